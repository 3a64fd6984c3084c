//! Endpoints with certificates made for the occasion.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use caretaker::clock::{Clock as _, SystemClock};
use caretaker::probe::{
    AddressRules, Answer, HttpProbe, Probe as _, ProbeError, Question, valid_until,
};
use caretaker::watch::health::{Outcome, judge};
use http::{HeaderMap, Method};
use proptest::prelude::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use url::Url;

use super::check;
use super::probing::Names;
use super::server::{Server, answer};

const NAME: &str = "endpoint.example";

/// An authority of a test, and what it signs.
struct Authority {
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let der = parameters.self_signed(&key).unwrap().der().to_vec();
        Self {
            der,
            issuer: Issuer::new(parameters, key),
        }
    }

    /// A certificate for [`NAME`] that ends so many hours from now.
    fn certificate(&self, hours: i64) -> (Vec<u8>, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
        let moment = u64::try_from(SystemClock.now().0).unwrap();
        let now = std::time::UNIX_EPOCH + Duration::from_millis(moment);
        let hour = Duration::from_hours(1);
        let count = u32::try_from(hours.unsigned_abs()).unwrap();
        let end = if hours < 0 {
            now - hour * count
        } else {
            now + hour * count
        };
        parameters.not_before = (now - hour * 24 * 30).into();
        parameters.not_after = end.into();
        let signed = parameters.signed_by(&key, &self.issuer).unwrap();
        (signed.der().to_vec(), key)
    }

    /// A server that answers 200 to everything.
    fn serve(&self, hours: i64) -> SocketAddr {
        self.answer(hours, "200 OK\r\n".to_owned())
    }

    /// A server that answers everything with this status and these headers.
    fn answer(&self, hours: i64, head: String) -> SocketAddr {
        let (certificate, key) = self.certificate(hours);
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.into()], key)
            .unwrap();
        let config = Arc::new(config);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = rustls::StreamOwned::new(connection, socket);
                // A client that does not like the certificate goes away.
                if stream.read(&mut [0; 4_096]).is_ok() {
                    let answer = format!("HTTP/1.1 {head}content-length: 0\r\n\r\n");
                    drop(stream.write_all(answer.as_bytes()));
                    stream.conn.send_close_notify();
                    drop(stream.flush());
                }
            }
        });
        address
    }
}

async fn ask(address: SocketAddr, host: &str, roots: &[Vec<u8>]) -> Result<Answer, ProbeError> {
    let rules = AddressRules {
        private: false,
        loopback: true,
    };
    let names = Names::of(vec![vec![IpAddr::from([127, 0, 0, 1])]]);
    let probe = HttpProbe::new(rules, names, roots).unwrap();
    let question = Question {
        method: &Method::GET,
        url: &Url::parse(&format!("https://{host}:{}/", address.port())).unwrap(),
        headers: &HeaderMap::new(),
        deadline: Duration::from_secs(10),
        redirects: 5,
        body: None,
    };
    probe.ask(&question).await
}

#[tokio::test]
async fn a_certificate_that_ends_in_three_days_is_seen_and_the_check_passes() {
    let authority = Authority::new();
    let address = authority.serve(3 * 24 + 1);
    let asked = ask(address, NAME, std::slice::from_ref(&authority.der)).await;
    assert!(asked.as_ref().unwrap().authentic);
    let check = check(r#"{"name": "a", "url": "https://endpoint.example/"}"#);
    let outcome = judge(&check, &asked, SystemClock.now());
    assert!(
        matches!(
            outcome,
            Outcome::Passed {
                certificate_days: Some(3),
                ..
            }
        ),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_certificate_that_is_over_foreign_or_of_another_host_is_a_failure() {
    let authority = Authority::new();
    let roots = std::slice::from_ref(&authority.der);
    let over = ask(authority.serve(-2), NAME, roots)
        .await
        .unwrap_err()
        .to_string();
    assert!(over.contains("certificate expired"), "{over}");
    let address = authority.serve(48);
    let foreign = ask(address, NAME, &[]).await.unwrap_err().to_string();
    assert!(foreign.contains("invalid peer certificate"), "{foreign}");
    let other = ask(address, "other.example", roots)
        .await
        .unwrap_err()
        .to_string();
    assert!(other.contains("invalid peer certificate"), "{other}");
    // The certificate is for a name, whatever its address is.
    let numeric = ask(address, "127.0.0.1", roots)
        .await
        .unwrap_err()
        .to_string();
    assert!(numeric.contains("invalid peer certificate"), "{numeric}");
}

#[tokio::test]
async fn away_from_https_nothing_is_followed() {
    let authority = Authority::new();
    let plain = Server::start(|_| answer("200 OK", "", "")).await;
    let head = format!("302 Found\r\nlocation: {}\r\n", plain.url("/"));
    let address = authority.answer(48, head);
    let refused = ask(address, NAME, std::slice::from_ref(&authority.der)).await;
    let text = refused.unwrap_err().to_string();
    assert!(
        text.ends_with("redirects to clear text, away from https"),
        "{text}"
    );
    assert_eq!(plain.requests().len(), 0);
    // Asked by http, a server of https answers nothing that is understood.
    let rules = AddressRules {
        private: false,
        loopback: true,
    };
    let probe = HttpProbe::new(rules, Names::none(), &[]).unwrap();
    let url = Url::parse(&format!("http://{address}/")).unwrap();
    assert!(!probe.reaches(&url, Duration::from_secs(2)).await);
}

#[test]
fn the_end_of_any_certificate_is_read() {
    let authority = Authority::new();
    for hours in [-1_000, 1, 24 * 365 * 30] {
        let (certificate, _) = authority.certificate(hours);
        let end = valid_until(&certificate).unwrap();
        let expected = SystemClock.now().plus_seconds(hours * 3_600);
        assert!(
            (end.0 - expected.0).abs() < 60_000,
            "{hours}: {end} {expected}"
        );
        for length in 0..certificate.len() {
            std::hint::black_box(valid_until(&certificate[..length]));
        }
    }
    assert!(valid_until(&authority.der).is_some());
}

proptest! {
    #[test]
    fn any_bytes_are_a_certificate_or_not(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        std::hint::black_box(valid_until(&bytes));
    }

    #[test]
    fn a_certificate_with_one_byte_changed_is_read_or_not(place in 0_usize..600, value in any::<u8>()) {
        let mut certificate = Authority::new().certificate(24).0;
        if let Some(byte) = certificate.get_mut(place) {
            *byte = value;
        }
        std::hint::black_box(valid_until(&certificate));
    }
}

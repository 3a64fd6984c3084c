//! Which addresses are asked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use caretaker::probe::AddressRules;
use proptest::prelude::*;
use url::Url;

const NOTHING_MORE: AddressRules = AddressRules {
    private: false,
    loopback: false,
};
const EVERYTHING: AddressRules = AddressRules {
    private: true,
    loopback: true,
};

fn refused(rules: AddressRules, address: &str) -> bool {
    rules.refusal(address.parse().unwrap()).is_some()
}

#[test]
fn public_hosts_are_asked_and_nothing_else_whatever_is_allowed() {
    for public in [
        "1.1.1.1",
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.0",
        "169.253.255.255",
        "172.15.0.1",
        "172.32.0.1",
        "192.0.1.1",
        "198.17.0.1",
        "198.20.0.1",
        "223.255.255.255",
        "11.0.0.1",
        "2606:4700::1111",
        "2a00:1450::1",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
    ] {
        assert!(!refused(NOTHING_MORE, public), "{public}");
    }
    // Break it: drop any row of the tables in `probe::address`.
    for never in [
        "0.0.0.0",
        "0.1.2.3",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "168.63.129.16",
        "169.254.0.1",
        "169.254.169.254",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "fe80::1",
        "febf::1",
        "ff02::1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001::1",
        "2001:db8::1",
        "3fff::1",
        "fec0::1",
        "100::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "5f00::1",
        "4000::1",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "::ffff:100.64.0.1",
        "::7f00:1",
        "::a9fe:a9fe",
    ] {
        assert!(refused(EVERYTHING, never), "{never}");
    }
}

#[test]
fn private_networks_and_this_machine_are_asked_only_where_that_is_allowed() {
    let private = AddressRules {
        private: true,
        loopback: false,
    };
    let loopback = AddressRules {
        private: false,
        loopback: true,
    };
    for address in [
        "10.0.0.1",
        "10.255.255.255",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "fc00::1",
        "fdff::1",
        "::ffff:10.0.0.1",
    ] {
        assert!(!refused(private, address), "{address}");
        assert!(
            refused(loopback, address) && refused(NOTHING_MORE, address),
            "{address}"
        );
    }
    for address in ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1"] {
        assert!(!refused(loopback, address), "{address}");
        assert!(
            refused(private, address) && refused(NOTHING_MORE, address),
            "{address}"
        );
    }
}

#[test]
fn every_way_to_write_an_address_in_a_url_is_the_same_address() {
    for written in [
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://169.254.43518/",
        "http://169.16689662/",
        "http://0xa9.0xfe.0xa9.0xfe/",
        "http://169.254.169.254./",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[0:0:0:0:0:ffff:a9fe:a9fe]/",
        "http://[64:ff9b::169.254.169.254]/",
        "http://１６９.２５４.１６９.２５４/",
        "http://169。254。169。254/",
        "http://[::]/",
        "http://0/",
    ] {
        let url = Url::parse(written).unwrap();
        assert!(EVERYTHING.refusal_of(&url).is_some(), "{written} is {url}");
    }
}

/// Addresses near the ranges that matter, and others.
fn near() -> impl Strategy<Value = Ipv4Addr> {
    let first = prop::sample::select(vec![
        0_u8, 10, 100, 127, 168, 169, 172, 192, 198, 203, 224, 255,
    ]);
    let second = prop_oneof![
        any::<u8>(),
        prop::sample::select(vec![0_u8, 16, 18, 31, 51, 63, 64, 88, 127, 168, 254])
    ];
    prop_oneof![
        (first, second, any::<u8>(), any::<u8>())
            .prop_map(|(a, b, c, d)| Ipv4Addr::new(a, b, c, d)),
        any::<u32>().prop_map(Ipv4Addr::from),
    ]
}

proptest! {
    /// The standard library knows some of these ranges too, from another hand.
    #[test]
    fn what_the_standard_library_calls_no_public_host_is_not_asked(address in near()) {
        let never = address.is_link_local() || address.is_multicast() || address.is_broadcast()
            || address.is_documentation() || address.is_unspecified();
        let ours = address.is_private() || address.is_loopback();
        prop_assert!(!never || EVERYTHING.refusal(address.into()).is_some());
        prop_assert!(!ours || NOTHING_MORE.refusal(address.into()).is_some());
        prop_assert!(!ours || EVERYTHING.refusal(address.into()).is_none());
    }

    #[test]
    fn an_address_inside_another_is_judged_as_itself(bits in any::<u32>()) {
        let inner = Ipv4Addr::from(bits);
        for rules in [NOTHING_MORE, EVERYTHING] {
            let outer = IpAddr::from(inner.to_ipv6_mapped());
            prop_assert_eq!(rules.refusal(outer), rules.refusal(inner.into()));
        }
    }

    #[test]
    fn allowing_more_never_refuses_more(bits in any::<u128>()) {
        let address = IpAddr::from(Ipv6Addr::from(bits));
        if NOTHING_MORE.refusal(address).is_none() {
            prop_assert!(EVERYTHING.refusal(address).is_none());
        }
    }
}

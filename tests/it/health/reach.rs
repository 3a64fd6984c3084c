//! Whether anything can be reached from here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use caretaker::probe::{Answer, Probe, ProbeError, Question};
use caretaker::watch::health::SelfCheck;
use tokio::task::JoinSet;
use url::Url;

/// A network that is there or not.
#[derive(Default)]
struct Network {
    there: AtomicBool,
    asked: AtomicUsize,
}

#[async_trait]
impl Probe for Network {
    async fn ask(&self, _: &Question<'_>) -> Result<Answer, ProbeError> {
        panic!("endpoints are not asked here");
    }

    async fn reaches(&self, target: &Url, _: Duration) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.there.load(Ordering::SeqCst) && target.host_str() == Some("two.example")
    }
}

fn check(network: &Arc<Network>, targets: &[&str]) -> SelfCheck {
    let targets = targets.iter().map(|target| target.parse().unwrap());
    SelfCheck::new(Arc::clone(network) as Arc<dyn Probe>, targets.collect())
}

const BOTH: [&str; 2] = ["https://one.example/", "https://two.example/"];

#[tokio::test]
async fn one_target_that_answers_is_enough_and_without_targets_nothing_is_asked() {
    let network = Arc::new(Network::default());
    let both = check(&network, &BOTH);
    assert!(!both.reaches_anything().await);
    network.there.store(true, Ordering::SeqCst);
    assert!(both.reaches_anything().await);
    let asked = network.asked.load(Ordering::SeqCst);
    assert!(check(&network, &[]).reaches_anything().await);
    assert_eq!(network.asked.load(Ordering::SeqCst), asked);
}

#[tokio::test]
async fn what_was_found_out_before_a_check_failed_says_nothing_about_it() {
    let network = Arc::new(Network::default());
    network.there.store(true, Ordering::SeqCst);
    let both = check(&network, &BOTH);
    assert!(both.reaches_anything().await);
    network.there.store(false, Ordering::SeqCst);
    assert!(!both.reaches_anything().await);
    network.there.store(true, Ordering::SeqCst);
    assert!(both.reaches_anything().await);
}

#[tokio::test]
async fn many_checks_that_fail_together_ask_once_or_twice() {
    let network = Arc::new(Network::default());
    let both = Arc::new(check(&network, &BOTH));
    let mut failed = JoinSet::new();
    for _ in 0..200 {
        let both = Arc::clone(&both);
        failed.spawn(async move { both.reaches_anything().await });
    }
    assert!(failed.join_all().await.into_iter().all(|reached| !reached));
    let asked = network.asked.load(Ordering::SeqCst);
    assert!(asked <= 4, "{asked}");
}

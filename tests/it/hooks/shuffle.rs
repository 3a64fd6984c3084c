//! Deliveries are shuffled, dropped and doubled on their way. Whatever arrives, nothing but hints comes of it, and whoever
//! looks when hinted at looks no earlier than the newest version that arrived.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Numbers that look random, from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// What one repository's run went through, in the order in which it happened.
struct Told {
    repository: u64,
    /// Position in the repository's own history.
    moment: usize,
    id: String,
    body: Vec<u8>,
}

/// Three watched repositories, one run each, with two attempts.
fn history() -> Vec<Told> {
    let mut told = Vec::new();
    for repository in 1..=3 {
        let phases = [
            (1, 0, "queued"),
            (1, 0, "in_progress"),
            (1, 40, "completed"),
            (2, 60, "queued"),
            (2, 61, "in_progress"),
            (2, 61, "completed"),
        ];
        for (moment, (attempt, seconds, status)) in phases.into_iter().enumerate() {
            told.push(Told {
                repository,
                moment,
                id: guid(repository * 100 + moment as u64),
                body: run(repository, attempt, after(seconds), status),
            });
        }
    }
    told
}

/// The order of arrival: positions in the history, some missing, some twice.
fn arrivals(dice: &mut Dice, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).filter(|_| dice.below(4) > 0).collect();
    let doubled: Vec<usize> = order
        .iter()
        .copied()
        .filter(|_| dice.below(3) == 0)
        .collect();
    order.extend(doubled);
    for place in (1..order.len()).rev() {
        order.swap(place, dice.below(place + 1));
    }
    order
}

async fn tables_besides(world: &World) -> i64 {
    let mut rows = 0;
    for count in [
        "SELECT COUNT(*) FROM incident",
        "SELECT COUNT(*) FROM seen_run",
        "SELECT COUNT(*) FROM seen_job",
        "SELECT COUNT(*) FROM notice",
        "SELECT COUNT(*) FROM audit_event",
        "SELECT COUNT(*) FROM workflow_watch",
    ] {
        rows += world.count(count).await;
    }
    rows
}

#[tokio::test]
async fn shuffled_dropped_and_doubled_deliveries_are_hints_and_nothing_else() {
    for seed in 0..12 {
        one_story(&mut Dice(seed)).await;
    }
}

/// On each arrival that is news the project looks; what it then knows is everything that has happened at the provider.
async fn one_story(dice: &mut Dice) {
    let world = World::sqlite().await;
    for number in 2..=3 {
        world.watch(&project(1, number)).await;
    }
    let router = world.router();
    let told = history();
    let order = arrivals(dice, told.len());
    let mut newest: BTreeMap<u64, usize> = BTreeMap::new();
    let mut arrived: BTreeSet<usize> = BTreeSet::new();
    for (seconds, place) in (100..).zip(&order) {
        let now = after(seconds);
        world.clock.advance_millis(now.0 - world.clock.now().0);
        let Told {
            repository,
            moment,
            id,
            body,
        } = &told[*place];
        let signature = signed(SECRET, body);
        let delivery = request("workflow_run", id, &signature, body.clone());
        let (status, document) = answer(&router, delivery).await;
        assert_eq!(status, 202, "{document}");
        let news = newest.get(repository).is_none_or(|known| known < moment);
        let expected = match (arrived.insert(*place), news) {
            (false, _) => "known",
            (true, true) => "hinted",
            (true, false) => "stale",
        };
        assert_eq!(document["delivery"], expected, "{place} of {order:?}");
        if news {
            newest.insert(*repository, *moment);
        }
        let number = u8::try_from(*repository).unwrap();
        let watch = world.watch_of(&project(1, number)).await.unwrap();
        if news {
            assert_eq!(
                (watch.hinted_at, watch.next_at <= now.0),
                (Some(now.0), true)
            );
        }
    }
    assert_eq!(tables_besides(&world).await, 0);
    // A repository of which nothing arrived is not hinted at: polling finds it.
    let hinted = world.count("SELECT COUNT(*) FROM project_watch").await;
    assert_eq!(usize::try_from(hinted).unwrap(), newest.len());
}

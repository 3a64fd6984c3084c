//! Sample pages to look at.

use caretaker::web::serve;
use tokio::net::TcpListener;

use super::answers::{link, token};
use super::http::post;
use super::ledgers::run;
use super::scene::{Scene, after};
use super::story::{Story, Words};

/// Serves incidents of every kind on `CARETAKER_LOOK` (an address) until it is interrupted:
/// `CARETAKER_LOOK=127.0.0.1:8099 cargo test --test it web::look -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "serves until it is interrupted"]
async fn serve_sample_pages() {
    let address = std::env::var("CARETAKER_LOOK").unwrap_or_else(|_| "127.0.0.1:8099".to_owned());
    let scene = Scene::new().await;
    scene.clock.advance_millis(60_000);
    answered(&scene, 1).await.land().await;
    answered(&scene, 2).await.hand_over().await;
    denied(&scene).await;
    tampered(&scene).await;
    let hostile = Words {
        job: "asked, with hostile names".to_owned(),
        title: "Tidy\u{202e} up <script>alert(1)</script>".to_owned(),
        path: "src/safe\u{202e}sr.evil".to_owned(),
        ..Words::default()
    };
    for (number, words) in [(10, job("asked")), (11, hostile)] {
        let token = token(number);
        let mut story = Story::begin(&scene, words).await;
        story.investigate().await;
        story.fix().await;
        story.ask(token.hash(), 86_400).await;
        eprintln!("http://{address}{}", link(&token));
    }
    scene.clock.advance_millis(600_000);
    eprintln!("http://{address}/");
    let listener = TcpListener::bind(&address).await.unwrap();
    let forever = std::future::pending();
    serve(listener, scene.state(), forever).await.unwrap();
}

fn job(job: &str) -> Words {
    Words {
        job: job.to_owned(),
        ..Words::default()
    }
}

/// An incident whose owner approved.
async fn answered(scene: &Scene, number: u8) -> Story<'_> {
    let token = token(number);
    let mut story = Story::begin(scene, job(&format!("test {number}"))).await;
    story.investigate().await;
    story.fix().await;
    story.ask(token.hash(), 3_600).await;
    let question = story.request(after(3_600)).digest();
    let form = format!("request={question}&decision=approve&comment=Checked+against+the+calendar.");
    post(&scene.router(), &link(&token), &form).await;
    story.sign_the_answer().await;
    story
}

async fn denied(scene: &Scene) {
    let words = Words {
        path: ".github/workflows/ci.yml".to_owned(),
        ..job("denied")
    };
    let mut story = Story::begin(scene, words).await;
    story.investigate().await;
    story.refuse().await;
    story.end().await;
}

/// One column of one row says what nobody signed.
async fn tampered(scene: &Scene) {
    let mut story = Story::begin(scene, job("tampered")).await;
    story.investigate().await;
    story.fix().await;
    story.end().await;
    let mut raw = scene.raw().await;
    run(&mut raw, "DROP TRIGGER ledger_no_update".to_owned()).await;
    let incident = &story.incident;
    let update =
        format!("UPDATE ledger SET role = 'executor' WHERE seq = 1 AND incident = '{incident}'");
    run(&mut raw, update).await;
}

//! Sample pages to look at.

use caretaker::web::serve;
use tokio::net::TcpListener;

use super::answers::{link, token};
use super::http::post;
use super::scene::{Scene, after};
use super::story::{Story, Words};

/// Serves incidents of every kind on `CARETAKER_LOOK` (an address) until it is interrupted:
/// `CARETAKER_LOOK=127.0.0.1:8099 cargo test --test it web::look -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "serves until it is interrupted"]
async fn serve_sample_pages() {
    let address = std::env::var("CARETAKER_LOOK").unwrap_or_else(|_| "127.0.0.1:8099".to_owned());
    let scene = Scene::new().await;
    for (number, ending) in ["lands", "changed"].into_iter().enumerate() {
        let job = format!("test ({ending})");
        let token = token(u8::try_from(number).unwrap());
        let mut story = Story::begin(
            &scene,
            Words {
                job,
                ..Words::default()
            },
        )
        .await;
        story.investigate().await;
        story.fix().await;
        story.ask(token.hash(), 3_600).await;
        let question = story.request(after(3_600)).digest();
        let form =
            format!("request={question}&decision=approve&comment=Checked+against+the+calendar.");
        post(&scene.router(), &link(&token), &form).await;
        story.sign_the_answer().await;
        match ending {
            "lands" => story.land().await,
            _ => story.hand_over().await,
        }
        eprintln!("{ending}: http://{address}/incidents/{}", story.incident);
    }
    let words = Words {
        job: "workflow".to_owned(),
        path: ".github/workflows/ci.yml".to_owned(),
        ..Words::default()
    };
    let mut story = Story::begin(&scene, words).await;
    story.investigate().await;
    story.refuse().await;
    story.end().await;
    eprintln!("denied: http://{address}/incidents/{}", story.incident);
    let words = Words {
        job: "hostile".to_owned(),
        title: "Tidy\u{202e} up <script>alert(1)</script>".to_owned(),
        path: "src/safe\u{202e}sr.evil".to_owned(),
        ..Words::default()
    };
    for (number, words) in [
        (
            10,
            Words {
                job: "asked".to_owned(),
                ..Words::default()
            },
        ),
        (11, words),
    ] {
        let token = token(number);
        let mut story = Story::begin(&scene, words).await;
        story.investigate().await;
        story.fix().await;
        story.ask(token.hash(), 86_400).await;
        eprintln!(
            "asked: http://{address}/incidents/{} http://{address}{}",
            story.incident,
            link(&token)
        );
    }
    scene.clock.advance_millis(600_000);
    let listener = TcpListener::bind(&address).await.unwrap();
    let forever = std::future::pending();
    serve(listener, scene.state(), forever).await.unwrap();
}

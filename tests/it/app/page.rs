//! The page as a person sees it.

use caretaker::onboard::app::{Created, Flow, Plan, Receive, ReceptionError};
use tokio::net::TcpListener;

use super::creating::counting;
use super::manifest::plan;
use super::*;

/// Nothing comes back in these tests.
struct Nobody;

#[async_trait]
impl Receive for Nobody {
    async fn receive(&self, _: &str) -> Result<Created, ReceptionError> {
        std::future::pending().await
    }
}

/// The page of a plan, without the port, which differs from run to run.
async fn page(plan: &Plan) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let flow = Flow::prepare(listener, plan, "/home/ada/app.pem", &mut counting()).unwrap();
    let url = flow.url();
    let patience = Duration::from_mins(1);
    let running = tokio::spawn(flow.run(Arc::new(Nobody), patience, std::future::pending()));
    let browser = browser().build().unwrap();
    let page = browser.get(url).send().await.unwrap().text().await.unwrap();
    running.abort();
    page.replace(&port.to_string(), "PORT")
}

#[tokio::test]
async fn the_page_says_what_is_asked_for_and_has_one_button() {
    let own = page(&plan("https://github.com")).await;
    insta::assert_snapshot!(own);
    assert_eq!(own.matches("<button").count(), 1);
    assert!(!own.contains("<script"));
    let organisations = Plan {
        organisation: Some("octo".to_owned()),
        webhook: Some("https://care.example/webhooks/github".to_owned()),
        ..plan("https://ghe.example.com")
    };
    let page = page(&organisations).await;
    assert!(page.contains("https://ghe.example.com/organizations/octo/settings/apps/new?state="));
    assert!(page.contains("https://care.example/webhooks/github"));
}

#[tokio::test]
async fn text_in_the_page_stays_text() {
    let odd = Plan {
        name: "<script>\"'&".to_owned(),
        homepage: "https://x/\"><script>alert(1)</script>".to_owned(),
        ..plan("https://github.com")
    };
    let page = page(&odd).await;
    assert!(!page.contains("<script"), "{page}");
}

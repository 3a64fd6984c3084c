//! Over a real socket, to the end.

use std::time::Duration;

use caretaker::web::serve;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::scene::Scene;

#[tokio::test]
async fn a_stop_ends_serving_although_someone_holds_a_connection_open() {
    let scene = Scene::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, scene.state(), async move {
        stopped.await.unwrap();
    }));
    let mut asking = TcpStream::connect(address).await.unwrap();
    let request = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    asking.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    asking.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("ok\n"), "{answer}");

    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost:")
        .await
        .unwrap();
    stop.send(()).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), serving).await;
    ended.unwrap().unwrap().unwrap();
}

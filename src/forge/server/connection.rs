//! Connections that can be cut, so that a client never learns how its request ended.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

const WHOLE: u8 = 0;
const CUT_AFTER_FLUSH: u8 = 1;
const CUT: u8 = 2;

/// The scissors of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection(Arc<AtomicU8>);

impl Connection {
    /// From now on nothing is written any more.
    pub(crate) fn cut(&self) {
        self.0.store(CUT, Ordering::SeqCst);
    }

    /// What has been handed over so far is still sent, then nothing.
    pub(crate) fn cut_after_flush(&self) {
        self.0.store(CUT_AFTER_FLUSH, Ordering::SeqCst);
    }

    fn is(&self, state: u8) -> bool {
        self.0.load(Ordering::SeqCst) == state
    }
}

/// Listens for connections that can be cut.
pub(crate) struct CuttableListener(pub(crate) TcpListener);

impl Listener for CuttableListener {
    type Io = CuttableStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        (
            CuttableStream {
                stream,
                connection: Connection(Arc::new(AtomicU8::new(WHOLE))),
            },
            address,
        )
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for Connection {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.io().connection.clone()
    }
}

/// A TCP stream with scissors.
pub(crate) struct CuttableStream {
    stream: TcpStream,
    connection: Connection,
}

fn was_cut() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionReset,
        "the forge cut this connection",
    )
}

impl AsyncRead for CuttableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.connection.is(CUT) {
            return Poll::Ready(Err(was_cut()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if self.connection.is(CUT) || (self.connection.is(CUT_AFTER_FLUSH) && flushed.is_ready()) {
            return Poll::Ready(Err(was_cut()));
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

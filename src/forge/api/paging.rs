//! Pages of lists and the `Link` header that leads through them.

use serde_json::Value;

use super::super::encoding::percent_encoded_path;
use super::super::state::Shared;
use super::{Call, Reply};

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// From 1.
    number: usize,
    /// 1 to 100.
    size: usize,
}

impl Page {
    /// GitHub's defaults: 30 a page, at most 100; nonsense counts as absent.
    pub(crate) fn of(call: &Call) -> Self {
        let number = |name: &str| {
            call.query_value(name)
                .and_then(|text| text.parse::<usize>().ok())
                .filter(|number| *number > 0)
        };
        Self {
            number: number("page").unwrap_or(1),
            size: number("per_page").unwrap_or(30).min(100),
        }
    }

    /// The page's part of a list.
    pub(crate) fn part<T>(self, list: &[T]) -> &[T] {
        let start = (self.number - 1).saturating_mul(self.size).min(list.len());
        &list[start..start.saturating_add(self.size).min(list.len())]
    }

    pub(crate) fn is_first(self) -> bool {
        self.number == 1
    }

    /// The `Link` header, `None` when everything fits on one page. `path` is the list's own.
    fn link(self, shared: &Shared, path: &str, call: &Call, total: usize) -> Option<String> {
        let last = total.div_ceil(self.size).max(1);
        if last == 1 && self.number == 1 {
            return None;
        }
        let kept: String = call.query.iter().filter(|(key, _)| key != "page").fold(
            String::new(),
            |text, (key, value)| {
                let encoded = |part: &str| percent_encoded_path(part).replace('/', "%2F");
                format!("{text}{}={}&", encoded(key), encoded(value))
            },
        );
        let target = |page: usize, relation: &str| {
            format!(
                "<{}/{path}?{kept}page={page}>; rel=\"{relation}\"",
                shared.api()
            )
        };
        let mut links = Vec::new();
        if self.number > 1 {
            links.push(target(self.number - 1, "prev"));
        }
        if self.number < last {
            links.extend([target(self.number + 1, "next"), target(last, "last")]);
        }
        if self.number > 1 {
            links.push(target(1, "first"));
        }
        Some(links.join(", "))
    }
}

/// One page of a list that is an array.
pub(crate) fn array<T>(
    shared: &Shared,
    repository: u64,
    call: &Call,
    list: &[T],
    render: impl FnMut(&T) -> Value,
) -> Reply {
    let part = Page::of(call).part(list).iter().map(render).collect();
    linked(
        shared,
        repository,
        call,
        list.len(),
        Reply::ok(Value::Array(part)),
    )
}

/// One page of a list that is an object with `total_count`.
pub(crate) fn counted<T>(
    shared: &Shared,
    repository: u64,
    call: &Call,
    name: &str,
    list: &[T],
    render: impl FnMut(&T) -> Value,
) -> Reply {
    let part = Page::of(call).part(list).iter().map(render).collect();
    let mut body = serde_json::json!({"total_count": list.len()});
    body[name] = Value::Array(part);
    linked(shared, repository, call, list.len(), Reply::ok(body))
}

/// Adds the `Link` header where there is more than one page. Like GitHub it names the repository by its number, so that
/// the links outlive a rename.
pub(crate) fn linked(
    shared: &Shared,
    repository: u64,
    call: &Call,
    total: usize,
    reply: Reply,
) -> Reply {
    let rest: Vec<String> = call
        .behind_repository()
        .unwrap_or_default()
        .into_iter()
        .map(|part| percent_encoded_path(part).replace('/', "%2F"))
        .collect();
    let path = format!("repositories/{repository}/{}", rest.join("/"));
    linked_at(shared, &path, call, total, reply)
}

/// Adds the `Link` header of a list that lies at another path.
pub(crate) fn linked_at(
    shared: &Shared,
    path: &str,
    call: &Call,
    total: usize,
    reply: Reply,
) -> Reply {
    match Page::of(call).link(shared, path, call, total) {
        Some(link) => reply.with("link", link),
        None => reply,
    }
}

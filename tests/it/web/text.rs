//! A page as a person reads it: its words, one block a line.

/// Elements that begin a line of their own.
const BLOCKS: &[&str] = &[
    "p", "h1", "h2", "h3", "h4", "li", "dt", "dd", "tr", "td", "th", "section", "article", "div",
    "pre", "details", "summary", "header", "footer", "label", "button",
];

pub(super) fn text_of(html: &str) -> String {
    let mut text = String::new();
    let body = html.split_once("<body>").map_or(html, |(_, body)| body);
    let mut rest = body;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        let (tag, after) = tag.split_once('>').unwrap_or((tag, ""));
        let name = tag.trim_start_matches('/').split(' ').next().unwrap();
        if BLOCKS.contains(&name) {
            text.push('\u{1}');
        }
        rest = after;
    }
    text.push_str(rest);
    let lines = text.split('\u{1}').map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        decoded(&words.join(" "))
    });
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

fn decoded(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#38;", "&")
        .replace("&amp;", "&")
}

//! A histogram of scores as text and as a picture.

use super::calibrate::{BINS, edge};
use crate::intent::{Score, Suggestion};

/// Widest bar of the text, in characters.
const WIDEST: u64 = 50;

/// Lines from the first part that holds a score to the last.
pub(super) fn text(histogram: &[u64]) -> Vec<String> {
    let most = histogram.iter().max().copied().unwrap_or(0).max(1);
    let holds = |count: &u64| *count > 0;
    let first = histogram.iter().position(holds).unwrap_or(0);
    let last = histogram.iter().rposition(holds).unwrap_or(0);
    let parts = histogram.iter().enumerate();
    let parts = parts.take(last + 1).skip(first);
    parts
        .map(|(part, count)| {
            // Whatever is there is seen.
            let length = (count * WIDEST).div_ceil(most);
            let bar = "#".repeat(usize::try_from(length).unwrap_or(0));
            let gap = if bar.is_empty() { "" } else { " " };
            format!("{} {bar}{gap}{count}", hundredths(edge(part)))
        })
        .collect()
}

fn hundredths(micro: i64) -> String {
    let sign = if micro < 0 { '-' } else { '+' };
    let micro = micro.unsigned_abs();
    format!("{sign}{}.{:02}", micro / 1_000_000, micro / 10_000 % 100)
}

/// Room around the picture's plot, and its size, in its own units.
const LEFT: u64 = 60;
const TOP: u64 = 20;
const HEIGHT: u64 = 240;
const BAR: u64 = 16;

/// A picture (SVG) of the histogram and of the floors that are suggested.
pub(super) fn picture(histogram: &[u64], suggestion: Option<&Suggestion>) -> String {
    let most = histogram.iter().max().copied().unwrap_or(0).max(1);
    let width = BAR * BINS as u64;
    let (right, bottom) = (LEFT + width, TOP + HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>Scores of intent alignment</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        right + 20,
        bottom + 60
    );
    for (part, count) in (0_u64..).zip(histogram) {
        let height = (count * HEIGHT).div_ceil(most);
        if height > 0 {
            draw(
                &mut svg,
                format_args!(
                    "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{height}\" fill=\"#4a6fa5\"/>",
                    LEFT + part * BAR + 1,
                    bottom - height,
                    BAR - 2
                ),
            );
        }
    }
    draw(
        &mut svg,
        format_args!(
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#333333\"/>"
        ),
    );
    draw(
        &mut svg,
        format_args!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{most}</text>",
            LEFT - 6,
            TOP + 10
        ),
    );
    for part in (0..=BINS).step_by(5) {
        let at = LEFT + part as u64 * BAR;
        let name = hundredths(edge(part));
        draw(
            &mut svg,
            format_args!(
                "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{name}</text>",
                bottom + 18
            ),
        );
    }
    if let Some(floors) = suggestion {
        let floors = [
            (floors.threshold, "threshold", "#2e7d32"),
            (floors.hard_threshold, "hard_threshold", "#c62828"),
            (floors.drift_threshold, "drift_threshold", "#b26a00"),
        ];
        for (row, (floor, name, colour)) in (0_u64..).zip(floors) {
            let at = place(floor, width);
            draw(
                &mut svg,
                format_args!(
                    "<line x1=\"{at}\" y1=\"{TOP}\" x2=\"{at}\" y2=\"{bottom}\" stroke=\"{colour}\" stroke-dasharray=\"4 3\"/>\n<text x=\"{}\" y=\"{}\" fill=\"{colour}\">{name} {floor}</text>",
                    LEFT + row * 190,
                    bottom + 48
                ),
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, what: std::fmt::Arguments<'_>) {
    svg.push_str(&what.to_string());
    svg.push('\n');
}

fn place(score: Score, width: u64) -> u64 {
    let above = u64::try_from(score.micro() - Score::LEAST.micro()).unwrap_or(0);
    LEFT + above * width / 2_000_000
}

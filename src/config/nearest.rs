//! "Did you mean": the known name that a misspelt one is closest to.

/// Number of single-letter edits between two words, neighbours swapped counting one; case does not count.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().flat_map(char::to_lowercase).collect();
    let right: Vec<char> = right.chars().flat_map(char::to_lowercase).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let at =
                |cells: &[usize], place: usize| cells.get(place).copied().unwrap_or(usize::MAX - 1);
            let change = at(&above, column) + usize::from(letter != other);
            let mut best = change
                .min(at(&above, column + 1) + 1)
                .min(at(&line, column) + 1);
            let swapped = row > 0
                && column > 0
                && left.get(row - 1) == Some(other)
                && right.get(column - 1) == Some(letter);
            if swapped {
                best = best.min(at(&before, column - 1) + 1);
            }
            line.push(best);
        }
        before = std::mem::replace(&mut above, line);
    }
    above.last().copied().unwrap_or(0)
}

/// The nearest of the known names, when one is near enough to be meant.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > 60 {
        return None;
    }
    known
        .iter()
        .map(|candidate| (distance(name, candidate), *candidate))
        .min()
        .filter(|(edits, candidate)| *edits <= candidate.chars().count().div_ceil(3).max(2))
        .map(|(_, candidate)| candidate)
}

/// `did you mean "x"? Known here: …`
pub(super) fn suggestion(name: &str, known: &[&str]) -> String {
    let list = known.join(", ");
    match nearest(name, known) {
        Some(candidate) => format!("did you mean {candidate}? Known here: {list}"),
        None if known.is_empty() => "nothing is known here; remove it".to_owned(),
        None => format!("known here: {list}"),
    }
}

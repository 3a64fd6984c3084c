//! Characters that a person reading a log does not see, or sees in another order.

use serde::{Deserialize, Serialize};

/// Why a character is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Unseen {
    /// Unicode category Cc, without line feed and tab.
    Control,
    /// Changes the direction of text.
    Bidirectional,
    /// The tag block and the supplementary variation selectors, which can carry whole invisible sentences.
    Tag,
    /// Takes no room: zero-width spaces, fillers, invisible operators, line and paragraph separators.
    ZeroWidth,
    /// Joins or styles emoji; ordinary logs are full of them.
    EmojiJoiner,
    /// Other format characters, private use and non-characters.
    Other,
}

/// The reason for which `character` is taken out, or `None` for one that stays.
///
/// Sources: the general categories Cc, Cf and Co and the property `Default_Ignorable_Code_Point` of the Unicode Character Database.
pub(super) fn unseen(character: char) -> Option<Unseen> {
    if character.is_ascii() {
        let stays = !character.is_ascii_control() || matches!(character, '\n' | '\t');
        return (!stays).then_some(Unseen::Control);
    }
    match character {
        '\u{80}'..='\u{9f}' => Some(Unseen::Control),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some(Unseen::Bidirectional)
        }
        '\u{e0000}'..='\u{e0fff}' => Some(Unseen::Tag),
        '\u{fe0e}' | '\u{fe0f}' | '\u{200d}' => Some(Unseen::EmojiJoiner),
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{200c}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0d}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' => Some(Unseen::ZeroWidth),
        '\u{600}'..='\u{605}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{890}'
        | '\u{891}'
        | '\u{8e2}'
        | '\u{110bd}'
        | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{fdd0}'..='\u{fdef}'
        | '\u{f0000}'..='\u{10ffff}' => Some(Unseen::Other),
        _ if u32::from(character) & 0xfffe == 0xfffe => Some(Unseen::Other),
        _ => None,
    }
}

/// Whether `character` may not stand in a text that people are shown as one line of prose; a line feed may not either.
pub(in crate::agent) fn is_hidden(character: char) -> bool {
    !matches!(unseen(character), None | Some(Unseen::EmojiJoiner)) || character == '\n'
}

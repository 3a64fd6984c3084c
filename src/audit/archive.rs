//! The container of a bundle: a zip file in the one form that is accepted.
//!
//! Any zip program opens it, but of the many ways to write a zip file (APPNOTE.TXT 6.3.10) exactly one is read here: members
//! stored and not compressed, in the order of their names, one after another from the first byte, each with the same fixed
//! header, then the directory, then its end without a comment. So no byte of the file is outside of what is checked, and
//! there are no members that one reader sees and another does not.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::attest::text::shown;

/// The most members.
const MAX_MEMBERS: usize = 20_000;
/// The longest name of a member, in bytes.
const MAX_NAME: usize = 128;
/// 1 January 1980, 0:00, the first moment that a zip file can name.
const DATE: u16 = 0x0021;
/// Version 1.0 of the format is needed to read it.
const NEEDED: u16 = 10;
/// Made by version 1.0 on Unix: the upper byte says whose file modes are meant.
const MADE_BY: u16 = 0x030A;
/// An ordinary file that its owner may write and all may read.
const MODE: u32 = 0o100_644 << 16;
const LOCAL: u32 = 0x0403_4B50;
const CENTRAL: u32 = 0x0201_4B50;
const END: u32 = 0x0605_4B50;
const END_LENGTH: usize = 22;
const CENTRAL_LENGTH: usize = 46;

/// Why bytes are not such a file, or members make none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArchiveError {
    /// Too short, or something follows the end.
    #[error("it does not end like a bundle: it was cut off, has a comment, or is something else")]
    End,
    /// More members than are read.
    #[error("it says that it has {count} members, a bundle has at most {MAX_MEMBERS}")]
    Members {
        /// How many.
        count: usize,
    },
    /// A name that is not allowed.
    #[error(
        "the member name {name} is not one of a bundle: up to {MAX_NAME} of a-z, 0-9, `.`, `-` and `_`, in folders by `/`"
    )]
    Name {
        /// The name, made printable.
        name: String,
    },
    /// Names that do not ascend.
    #[error("the member {name} is there twice or not in its place")]
    Order {
        /// The name.
        name: String,
    },
    /// Other bytes than those this form has at that place.
    #[error("the {what} at byte {offset} is not in the one form that a bundle has")]
    Form {
        /// Which part.
        what: &'static str,
        /// Where, from 0.
        offset: usize,
    },
    /// The bytes of a member are not those that were stored.
    #[error("the member {name} is damaged: its checksum is another one")]
    Checksum {
        /// The name.
        name: String,
    },
    /// More than the format can say.
    #[error("the members together are too long for a bundle: at most 4 GiB")]
    TooLong,
}

/// Named byte strings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Archive<'a> {
    members: BTreeMap<&'a str, &'a [u8]>,
}

impl<'a> Archive<'a> {
    /// Reads a file, refusing every other form than that of [`write()`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        let directory = Directory::locate(bytes)?;
        let mut members = BTreeMap::new();
        let (mut data, mut entry) = (Cursor::new(bytes, 0), Cursor::new(bytes, directory.start));
        let mut last: Option<&str> = None;
        for _ in 0..directory.count {
            let (name, content) = member(&mut data, &mut entry)?;
            if last.is_some_and(|last| last >= name) {
                return Err(ArchiveError::Order {
                    name: name.to_owned(),
                });
            }
            last = Some(name);
            members.insert(name, content);
        }
        // Break it: drop these comparisons; bytes between members and directory are then nobody's
        // (`audit::archive::no_byte_is_outside`).
        data.expect_at(directory.start, "end of the members")?;
        entry.expect_at(bytes.len() - END_LENGTH, "end of the directory")?;
        Ok(Self { members })
    }

    /// One member.
    pub fn member(&self, name: &str) -> Option<&'a [u8]> {
        self.members.get(name).copied()
    }

    /// Every member, by ascending name.
    pub fn members(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.members.iter().map(|(name, content)| (*name, *content))
    }

    /// The members of a folder, without its name, by ascending name.
    pub fn folder(&self, folder: &str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        self.members().filter_map(move |(name, content)| {
            let rest = name.strip_prefix(folder)?.strip_prefix('/')?;
            Some((rest, content))
        })
    }
}

/// Writes the one form.
///
/// # Errors
/// A name is not allowed, there are too many members, or they are too long together.
pub fn write(members: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, ArchiveError> {
    if members.len() > MAX_MEMBERS {
        return Err(ArchiveError::Members {
            count: members.len(),
        });
    }
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let described = Described::of(name, content)?;
        let offset = u32::try_from(file.len()).map_err(|_| ArchiveError::TooLong)?;
        directory.extend(described.central(offset));
        directory.extend_from_slice(name.as_bytes());
        file.extend(described.local());
        file.extend_from_slice(name.as_bytes());
        file.extend_from_slice(content);
    }
    let end = end(members.len(), directory.len(), file.len())?;
    file.append(&mut directory);
    file.extend(end);
    Ok(file)
}

/// What both headers of a member say.
struct Described {
    checksum: u32,
    length: u32,
    name_length: u16,
}

impl Described {
    fn of(name: &str, content: &[u8]) -> Result<Self, ArchiveError> {
        if !is_name(name) {
            return Err(ArchiveError::Name { name: shown(name) });
        }
        Ok(Self {
            checksum: crc32fast::hash(content),
            length: u32::try_from(content.len()).map_err(|_| ArchiveError::TooLong)?,
            name_length: u16::try_from(name.len()).map_err(|_| ArchiveError::TooLong)?,
        })
    }

    /// Flags, method, time, date, checksum, both lengths, length of the name, no extra field.
    fn common(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(26);
        for half in [NEEDED, 0, 0, 0, DATE] {
            bytes.extend(half.to_le_bytes());
        }
        for word in [self.checksum, self.length, self.length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.name_length.to_le_bytes());
        bytes.extend([0, 0]);
        bytes
    }

    fn local(&self) -> Vec<u8> {
        let mut bytes = LOCAL.to_le_bytes().to_vec();
        bytes.extend(self.common());
        bytes
    }

    fn central(&self, offset: u32) -> Vec<u8> {
        let mut bytes = CENTRAL.to_le_bytes().to_vec();
        bytes.extend(MADE_BY.to_le_bytes());
        bytes.extend(self.common());
        // No comment, first disk, no internal attributes.
        bytes.extend([0; 6]);
        bytes.extend(MODE.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        bytes
    }
}

fn end(count: usize, length: usize, start: usize) -> Result<Vec<u8>, ArchiveError> {
    let count = u16::try_from(count).map_err(|_| ArchiveError::Members { count })?;
    let mut bytes = END.to_le_bytes().to_vec();
    bytes.extend([0; 4]);
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    for word in [length, start] {
        let word = u32::try_from(word).map_err(|_| ArchiveError::TooLong)?;
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0, 0]);
    Ok(bytes)
}

/// Where the directory is, as the end says.
struct Directory {
    count: usize,
    start: usize,
}

impl Directory {
    fn locate(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let at = bytes
            .len()
            .checked_sub(END_LENGTH)
            .ok_or(ArchiveError::End)?;
        let mut cursor = Cursor::new(bytes, at + 10);
        let count = usize::from(u16::from_le_bytes(cursor.array().ok_or(ArchiveError::End)?));
        let length = cursor.word().ok_or(ArchiveError::End)?;
        let start = cursor.word().ok_or(ArchiveError::End)?;
        if count > MAX_MEMBERS {
            return Err(ArchiveError::Members { count });
        }
        let whole = start.checked_add(length) == Some(at);
        if whole && bytes.get(at..) == Some(end(count, length, start)?.as_slice()) {
            Ok(Self { count, start })
        } else {
            Err(ArchiveError::End)
        }
    }
}

/// Reads one member and its entry in the directory, which must be exactly what this member's would be.
fn member<'a>(
    data: &mut Cursor<'a>,
    entry: &mut Cursor<'a>,
) -> Result<(&'a str, &'a [u8]), ArchiveError> {
    let (data_at, entry_at) = (data.offset, entry.offset);
    let header = |offset| ArchiveError::Form {
        what: "header of a member",
        offset,
    };
    let listing = |offset| ArchiveError::Form {
        what: "entry of the directory",
        offset,
    };
    let central = entry
        .take(CENTRAL_LENGTH)
        .ok_or_else(|| listing(entry_at))?;
    let mut lengths = Cursor::new(central, 24);
    let length = lengths.word().ok_or_else(|| listing(entry_at))?;
    let name_length = lengths.array().map(u16::from_le_bytes);
    let name_length = usize::from(name_length.ok_or_else(|| listing(entry_at))?);
    let name = entry.take(name_length).ok_or_else(|| listing(entry_at))?;
    let name = std::str::from_utf8(name).map_err(|_| ArchiveError::Name {
        name: shown(&String::from_utf8_lossy(name)),
    })?;
    let local = data.take(30).ok_or_else(|| header(data_at))?;
    let local_name = data.take(name_length).ok_or_else(|| header(data_at))?;
    let content = data.take(length).ok_or_else(|| header(data_at))?;
    let described = Described::of(name, content)?;
    let offset = u32::try_from(data_at).map_err(|_| ArchiveError::TooLong)?;
    if local_name != name.as_bytes() {
        return Err(header(data_at));
    }
    if local == described.local() && central == described.central(offset) {
        return Ok((name, content));
    }
    // Everything but the checksum is as it has to be: then it is the content that changed.
    let stored = local.get(14..18).unwrap_or_default();
    if stored != described.checksum.to_le_bytes() {
        return Err(ArchiveError::Checksum {
            name: name.to_owned(),
        });
    }
    Err(if local == described.local() {
        listing(entry_at)
    } else {
        header(data_at)
    })
}

/// Lower-case names in folders; no empty part and none of dots alone, so that nothing is written elsewhere when it is unpacked.
fn is_name(name: &str) -> bool {
    let sound = |part: &str| {
        !part.is_empty()
            && !part.bytes().all(|byte| byte == b'.')
            && part.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte)
            })
    };
    name.len() <= MAX_NAME && name.split('/').all(sound)
}

/// A place in bytes.
struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, offset }
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.offset.checked_add(length)?;
        let taken = self.bytes.get(self.offset..end)?;
        self.offset = end;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn word(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    fn expect_at(&self, offset: usize, what: &'static str) -> Result<(), ArchiveError> {
        if self.offset == offset {
            Ok(())
        } else {
            Err(ArchiveError::Form {
                what,
                offset: self.offset,
            })
        }
    }
}

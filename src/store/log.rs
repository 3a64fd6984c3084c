//! The organisation's Merkle log: leaves in the order in which they were committed, the hashes that proofs are made of, and
//! what was signed about them.
//!
//! A leaf is appended in the transaction that writes what it logs, so that nothing is stored that is not logged. The row of
//! the table `log` is locked by the first append of a transaction: one organisation's appends follow each other.

use sqlx::any::AnyRow;

use super::statement::statements;
use super::{Scoped, Store, StoreError, Work, value};
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId};
use crate::log::{Frontier, Leaf, LeafKind, Node, Record, TreeHash};

statements! {
    /// The first leaf of an organisation needs its log.
    BEGIN_LOG = "INSERT INTO log (organisation, size, peaks) VALUES ($1, 0, $2) ON CONFLICT (organisation) DO NOTHING";
    /// The place of the next leaf; locks the log until the transaction ends.
    NEXT_PLACE = "UPDATE log SET size = size + 1 WHERE organisation = $1 RETURNING size - 1 AS position, peaks";
    /// The tree after it.
    SET_PEAKS = "UPDATE log SET peaks = $1 WHERE organisation = $2";
    /// A leaf.
    INSERT_LEAF = "INSERT INTO log_leaf (organisation, position, kind, incident, seq, entry, logged_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    /// A hash.
    INSERT_NODE = "INSERT INTO log_node (organisation, level, position, hash) VALUES ($1, $2, $3, $4)";
    /// Signed events that were stored before there was a log, in the order in which they happened.
    UNLOGGED = "SELECT l.incident, l.seq, l.envelope FROM ledger l JOIN incident i ON i.id = l.incident \
        WHERE i.organisation = $1 AND NOT EXISTS (SELECT 1 FROM log_leaf f WHERE f.incident = l.incident AND f.seq = l.seq) \
        ORDER BY l.occurred_at, l.incident, l.seq LIMIT $2";
    /// What the log's key signed.
    INSERT_CHECKPOINT = "INSERT INTO log_checkpoint (organisation, size, note, made_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (organisation, size) DO NOTHING";
    /// What somebody outside answered about it.
    INSERT_ANCHOR = "INSERT INTO log_anchor (organisation, size, kind, name, receipt, anchored_at) \
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (organisation, size, kind, name) DO NOTHING";
}

pub(super) mod scoped {
    use super::statements;

    statements! {
        /// How large the log is.
        pub(in crate::store) LOG = "SELECT size, peaks FROM log WHERE organisation = $1";
        /// One hash.
        pub(in crate::store) NODE = "SELECT hash FROM log_node WHERE organisation = $1 AND level = $2 AND position = $3";
        /// Leaves in order, with their bytes.
        pub(in crate::store) LEAVES = "SELECT f.position, f.kind, f.incident, f.seq, f.logged_at, \
            COALESCE(f.entry, l.envelope) AS entry FROM log_leaf f \
            LEFT JOIN ledger l ON l.incident = f.incident AND l.seq = f.seq \
            WHERE f.organisation = $1 AND f.position >= $2 AND f.position < $3 ORDER BY f.position";
        /// Where the events of an incident are.
        pub(in crate::store) PLACES = "SELECT seq, position FROM log_leaf WHERE organisation = $1 AND incident = $2 ORDER BY seq";
        /// What was signed for the organisation itself, newest first.
        pub(in crate::store) OF_NO_INCIDENT = "SELECT entry FROM log_leaf WHERE organisation = $1 AND kind = $2 AND incident IS NULL \
            ORDER BY position DESC";
        /// When something of a kind was logged last.
        pub(in crate::store) LAST_OF_KIND = "SELECT MAX(logged_at) AS logged_at FROM log_leaf WHERE organisation = $1 AND kind = $2";
        /// How many there are of a kind.
        pub(in crate::store) COUNT_OF_KIND = "SELECT COUNT(*) AS found FROM log_leaf WHERE organisation = $1 AND kind = $2";
        /// The newest checkpoint.
        pub(in crate::store) NEWEST_CHECKPOINT = "SELECT size, note, made_at FROM log_checkpoint WHERE organisation = $1 \
            ORDER BY size DESC LIMIT 1";
        /// The oldest checkpoint over at least so many leaves.
        pub(in crate::store) CHECKPOINT_OVER = "SELECT size, note, made_at FROM log_checkpoint WHERE organisation = $1 AND size >= $2 \
            ORDER BY size LIMIT 1";
        /// What others answered about checkpoints, newest first.
        pub(in crate::store) ANCHORS = "SELECT size, kind, name, receipt, anchored_at FROM log_anchor WHERE organisation = $1 \
            AND size >= $2 ORDER BY size DESC, kind, name LIMIT $3";
        /// What one of them answered about the largest checkpoint of at most a size.
        pub(in crate::store) NEWEST_ANCHOR = "SELECT size, kind, name, receipt, anchored_at FROM log_anchor WHERE organisation = $1 \
            AND kind = $2 AND name = $3 AND size <= $4 ORDER BY size DESC LIMIT 1";
        /// What one of them answered about checkpoints of at least a size, smallest first.
        pub(in crate::store) RECEIPTS = "SELECT size, kind, name, receipt, anchored_at FROM log_anchor WHERE organisation = $1 \
            AND kind = $2 AND name = $3 AND size >= $4 ORDER BY size LIMIT $5";
    }
}

/// What is appended.
pub(super) enum Entry<'a> {
    /// An event of an incident, whose bytes are the ledger's.
    Event {
        incident: &'a str,
        seq: i64,
        envelope: &'a [u8],
    },
    /// Anything else.
    Other(LeafKind, &'a [u8]),
}

/// A leaf as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLeaf {
    /// Its place, from 0.
    pub position: u64,
    /// The column `kind`; what counts is what the bytes say.
    pub kind: String,
    /// The incident and the place in its chain, of an event.
    pub event: Option<(String, u64)>,
    /// The bytes; none when they are an event's that is not there any more.
    pub entry: Option<Vec<u8>>,
    /// When it was logged.
    pub logged_at: Millis,
}

/// A checkpoint as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCheckpoint {
    /// How many leaves it is over.
    pub size: u64,
    /// The signed note.
    pub note: String,
    /// When it was made.
    pub made_at: Millis,
}

/// What a witness, a timestamp authority or a hosting service answered about a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnchor {
    /// The checkpoint's size.
    pub size: u64,
    /// `branch`, `witness` or `timestamp`.
    pub kind: String,
    /// Whose.
    pub name: String,
    /// The answer: a commit's id, a cosignature's line, a timestamp token.
    pub receipt: Vec<u8>,
    /// When it came.
    pub anchored_at: Millis,
}

impl Store {
    /// Logs what no other transaction writes: a record, a version of the trust root, an organisation's statement. Its place.
    pub async fn log(
        &self,
        organisation: &OrganisationId,
        leaf: &Leaf,
        now: Millis,
    ) -> Result<u64, StoreError> {
        let bytes = leaf.to_bytes().map_err(|error| unreadable(&error))?;
        let mut work = self.writing("appending to the log").await?;
        let entry = Entry::Other(leaf.kind(), &bytes);
        let position = work.log(organisation, &entry, now).await?;
        work.commit().await?;
        Ok(position)
    }

    /// Logs up to `limit` signed events that were stored before there was a log; how many.
    pub async fn log_what_is_not_logged(
        &self,
        organisation: &OrganisationId,
        limit: u32,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let mut work = self.writing("logging earlier events").await?;
        // The log is locked before it is asked what is missing: two processes that begin at once log everything once.
        work.begin_log(organisation).await?;
        let unlogged = sqlx::query(UNLOGGED)
            .bind(organisation.as_str())
            .bind(i64::from(limit));
        let rows = work.all(unlogged).await?;
        for row in &rows {
            let incident = value::text(row, "incident")?;
            let entry = Entry::Event {
                incident: &incident,
                seq: value::integer(row, "seq")?,
                envelope: &value::bytes(row, "envelope")?,
            };
            work.log(organisation, &entry, now).await?;
        }
        work.commit().await?;
        Ok(rows.len())
    }

    /// Keeps a checkpoint; one of that size that is there already stays.
    pub async fn keep_checkpoint(
        &self,
        organisation: &OrganisationId,
        size: u64,
        note: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("keeping a checkpoint").await?;
        let insert = sqlx::query(INSERT_CHECKPOINT)
            .bind(organisation.as_str())
            .bind(value::bigint("the log's size", size)?)
            .bind(note)
            .bind(now.0);
        work.execute(insert).await?;
        work.commit().await
    }

    /// Keeps what somebody outside answered about a checkpoint.
    pub async fn keep_anchor(
        &self,
        organisation: &OrganisationId,
        anchor: &StoredAnchor,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("keeping an anchor").await?;
        let insert = sqlx::query(INSERT_ANCHOR)
            .bind(organisation.as_str())
            .bind(value::bigint("the log's size", anchor.size)?)
            .bind(&anchor.kind)
            .bind(&anchor.name)
            .bind(anchor.receipt.as_slice())
            .bind(anchor.anchored_at.0);
        work.execute(insert).await?;
        work.commit().await
    }
}

impl Scoped<'_> {
    /// The log as it is now: its size and the hashes at its edge.
    pub async fn log_frontier(&self) -> Result<Frontier, StoreError> {
        let mut work = self.store.reading("reading the log's size").await?;
        let row = work
            .optional(sqlx::query(scoped::LOG).bind(self.organisation.as_str()))
            .await?;
        row.as_ref()
            .map_or_else(|| Ok(Frontier::new()), |row| frontier(row, "size"))
    }

    /// The hashes of some nodes, in that order.
    pub async fn log_hashes(
        &self,
        nodes: impl IntoIterator<Item = Node>,
    ) -> Result<Vec<TreeHash>, StoreError> {
        let mut work = self.store.reading("reading hashes of the log").await?;
        let mut hashes = Vec::new();
        for node in nodes {
            let read = sqlx::query(scoped::NODE)
                .bind(self.organisation.as_str())
                .bind(i64::from(node.level()))
                .bind(value::bigint("a node's place", node.index())?);
            let row = work.optional(read).await?;
            let row = row.ok_or_else(|| StoreError::Unreadable {
                what: "the log",
                reason: format!(
                    "the hash of node {} at level {} is missing; the database was changed by others or restored in part",
                    node.index(),
                    node.level()
                ),
            })?;
            hashes.push(hash(&value::bytes(&row, "hash")?)?);
        }
        Ok(hashes)
    }

    /// The leaves from `from` to `to` (exclusive), in order.
    pub async fn log_leaves(&self, from: u64, to: u64) -> Result<Vec<StoredLeaf>, StoreError> {
        let mut work = self.store.reading("reading the log").await?;
        let read = sqlx::query(scoped::LEAVES)
            .bind(self.organisation.as_str())
            .bind(value::bigint("a leaf's place", from)?)
            .bind(value::bigint("a leaf's place", to)?);
        work.all(read).await?.iter().map(leaf).collect()
    }

    /// Where in the log the events of an incident are: position in the chain, place in the log.
    pub async fn log_places(&self, incident: &IncidentId) -> Result<Vec<(u64, u64)>, StoreError> {
        let mut work = self.store.reading("looking events up in the log").await?;
        let read = sqlx::query(scoped::PLACES)
            .bind(self.organisation.as_str())
            .bind(incident.as_str());
        let rows = work.all(read).await?;
        let place = |row| Ok((value::count(row, "seq")?, value::count(row, "position")?));
        rows.iter().map(place).collect()
    }

    /// The envelopes of the organisation's own statements, newest first, unchecked.
    pub async fn logged_statements(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut work = self.store.reading("reading the log").await?;
        let read = sqlx::query(scoped::OF_NO_INCIDENT)
            .bind(self.organisation.as_str())
            .bind(LeafKind::Statement.name());
        let rows = work.all(read).await?;
        rows.iter().map(|row| value::bytes(row, "entry")).collect()
    }

    /// When something of this kind was logged last.
    pub async fn last_logged(&self, kind: LeafKind) -> Result<Option<Millis>, StoreError> {
        let mut work = self.store.reading("reading the log").await?;
        let read = sqlx::query(scoped::LAST_OF_KIND)
            .bind(self.organisation.as_str())
            .bind(kind.name());
        let row = work.one(read).await?;
        Ok(value::optional_integer(&row, "logged_at")?.map(Millis))
    }

    /// How many leaves of this kind there are.
    pub async fn logged(&self, kind: LeafKind) -> Result<u64, StoreError> {
        let mut work = self.store.reading("reading the log").await?;
        let read = sqlx::query(scoped::COUNT_OF_KIND)
            .bind(self.organisation.as_str())
            .bind(kind.name());
        value::count(&work.one(read).await?, "found")
    }

    /// The newest checkpoint.
    pub async fn newest_checkpoint(&self) -> Result<Option<StoredCheckpoint>, StoreError> {
        let mut work = self.store.reading("reading a checkpoint").await?;
        let read = sqlx::query(scoped::NEWEST_CHECKPOINT).bind(self.organisation.as_str());
        work.optional(read)
            .await?
            .as_ref()
            .map(checkpoint)
            .transpose()
    }

    /// The oldest checkpoint over at least `size` leaves.
    pub async fn checkpoint_over(&self, size: u64) -> Result<Option<StoredCheckpoint>, StoreError> {
        let mut work = self.store.reading("reading a checkpoint").await?;
        let read = sqlx::query(scoped::CHECKPOINT_OVER)
            .bind(self.organisation.as_str())
            .bind(value::bigint("the log's size", size)?);
        work.optional(read)
            .await?
            .as_ref()
            .map(checkpoint)
            .transpose()
    }

    /// What others answered about checkpoints over at least `size` leaves, newest first, at most `limit`.
    pub async fn anchors(&self, size: u64, limit: u32) -> Result<Vec<StoredAnchor>, StoreError> {
        let mut work = self.store.reading("reading anchors").await?;
        let read = sqlx::query(scoped::ANCHORS)
            .bind(self.organisation.as_str())
            .bind(value::bigint("the log's size", size)?)
            .bind(i64::from(limit));
        work.all(read).await?.iter().map(anchor).collect()
    }

    /// What one anchor answered about checkpoints over at least `size` leaves, smallest first, at most `limit`.
    pub async fn anchor_receipts(
        &self,
        kind: &str,
        name: &str,
        size: u64,
        limit: u32,
    ) -> Result<Vec<StoredAnchor>, StoreError> {
        let mut work = self.store.reading("reading anchors").await?;
        let read = sqlx::query(scoped::RECEIPTS)
            .bind(self.organisation.as_str())
            .bind(kind)
            .bind(name)
            .bind(value::bigint("the log's size", size)?)
            .bind(i64::from(limit));
        work.all(read).await?.iter().map(anchor).collect()
    }

    /// What one anchor answered about the largest checkpoint that it was shown, of those over at most `size` leaves: one over
    /// more than the log has is none of this log.
    pub async fn newest_anchor(
        &self,
        kind: &str,
        name: &str,
        size: u64,
    ) -> Result<Option<StoredAnchor>, StoreError> {
        let mut work = self.store.reading("reading an anchor").await?;
        let read = sqlx::query(scoped::NEWEST_ANCHOR)
            .bind(self.organisation.as_str())
            .bind(kind)
            .bind(name)
            .bind(value::bigint("the log's size", size)?);
        work.optional(read).await?.as_ref().map(anchor).transpose()
    }
}

impl Work {
    /// Appends a leaf; its place.
    pub(super) async fn log(
        &mut self,
        organisation: &OrganisationId,
        entry: &Entry<'_>,
        now: Millis,
    ) -> Result<u64, StoreError> {
        let next = || sqlx::query(NEXT_PLACE).bind(organisation.as_str());
        let row = if let Some(row) = self.optional(next()).await? {
            row
        } else {
            self.begin_log(organisation).await?;
            self.one(next()).await?
        };
        let mut tree = frontier(&row, "position")?;
        let position = tree.size();
        let (kind, event, bytes) = match *entry {
            Entry::Event {
                incident,
                seq,
                envelope,
            } => (LeafKind::Statement, Some((incident, seq)), envelope),
            Entry::Other(kind, bytes) => (kind, None, bytes),
        };
        let mut nodes = Vec::new();
        tree.append_with(TreeHash::of_leaf(bytes), |node, hash| {
            nodes.push((node, hash));
        })
        .map_err(|error| unreadable(&error))?;
        let leaf = sqlx::query(INSERT_LEAF)
            .bind(organisation.as_str())
            .bind(value::bigint("a leaf's place", position)?)
            .bind(kind.name())
            .bind(event.map(|(incident, _)| incident))
            .bind(event.map(|(_, seq)| seq))
            .bind(event.is_none().then_some(bytes))
            .bind(now.0);
        self.execute(leaf).await?;
        for (node, hash) in nodes {
            let insert = sqlx::query(INSERT_NODE)
                .bind(organisation.as_str())
                .bind(i64::from(node.level()))
                .bind(value::bigint("a node's place", node.index())?)
                .bind(hash.as_bytes().as_slice());
            self.execute(insert).await?;
        }
        let peaks: Vec<u8> = tree
            .peaks()
            .iter()
            .flat_map(TreeHash::as_bytes)
            .copied()
            .collect();
        let set = sqlx::query(SET_PEAKS)
            .bind(peaks)
            .bind(organisation.as_str());
        self.execute(set).await?;
        Ok(position)
    }

    /// Logs the digest of a document that was not there before.
    pub(super) async fn log_record(
        &mut self,
        organisation: &OrganisationId,
        record: Record,
        now: Millis,
    ) -> Result<(), StoreError> {
        let leaf = Leaf::record(record).map_err(|error| unreadable(&error))?;
        self.log_leaf(organisation, &leaf, now).await
    }

    /// Logs what is of no incident's chain.
    pub(super) async fn log_leaf(
        &mut self,
        organisation: &OrganisationId,
        leaf: &Leaf,
        now: Millis,
    ) -> Result<(), StoreError> {
        let bytes = leaf.to_bytes().map_err(|error| unreadable(&error))?;
        let entry = Entry::Other(leaf.kind(), &bytes);
        self.log(organisation, &entry, now).await.map(|_| ())
    }

    async fn begin_log(&mut self, organisation: &OrganisationId) -> Result<(), StoreError> {
        let begin = sqlx::query(BEGIN_LOG)
            .bind(organisation.as_str())
            .bind(&[][..]);
        self.execute(begin).await.map(|_| ())
    }
}

fn unreadable(reason: &impl ToString) -> StoreError {
    StoreError::Unreadable {
        what: "the log",
        reason: reason.to_string(),
    }
}

fn hash(bytes: &[u8]) -> Result<TreeHash, StoreError> {
    bytes
        .try_into()
        .map(TreeHash::from_bytes)
        .map_err(|_| unreadable(&format!("a hash of {} bytes instead of 32", bytes.len())))
}

/// The tree whose size stands in the column `size`.
fn frontier(row: &AnyRow, size: &'static str) -> Result<Frontier, StoreError> {
    let peaks = value::bytes(row, "peaks")?;
    let peaks = peaks.chunks(32).map(hash).collect::<Result<_, _>>()?;
    Frontier::from_peaks(value::count(row, size)?, peaks).map_err(|error| unreadable(&error))
}

fn leaf(row: &AnyRow) -> Result<StoredLeaf, StoreError> {
    let incident = value::optional_text(row, "incident")?;
    let event = incident
        .map(|incident| Ok((incident, value::count(row, "seq")?)))
        .transpose()?;
    Ok(StoredLeaf {
        position: value::count(row, "position")?,
        kind: value::text(row, "kind")?,
        event,
        entry: value::optional_bytes(row, "entry")?,
        logged_at: Millis(value::integer(row, "logged_at")?),
    })
}

fn checkpoint(row: &AnyRow) -> Result<StoredCheckpoint, StoreError> {
    Ok(StoredCheckpoint {
        size: value::count(row, "size")?,
        note: value::text(row, "note")?,
        made_at: Millis(value::integer(row, "made_at")?),
    })
}

fn anchor(row: &AnyRow) -> Result<StoredAnchor, StoreError> {
    Ok(StoredAnchor {
        size: value::count(row, "size")?,
        kind: value::text(row, "kind")?,
        name: value::text(row, "name")?,
        receipt: value::bytes(row, "receipt")?,
        anchored_at: Millis(value::integer(row, "anchored_at")?),
    })
}

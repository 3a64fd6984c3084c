-- The log of an organisation (RFC 6962): how many leaves, and the hashes of the complete subtrees at its right edge, 32 bytes
-- each, largest first.
CREATE TABLE log (
    organisation TEXT NOT NULL PRIMARY KEY REFERENCES organisation (id),
    size BIGINT NOT NULL DEFAULT 0,
    peaks BLOB NOT NULL
);

-- Its leaves in order. The bytes of a signed event are the ledger's, `entry` is null then; those of all others are here.
CREATE TABLE log_leaf (
    organisation TEXT NOT NULL REFERENCES organisation (id),
    position BIGINT NOT NULL,
    kind TEXT NOT NULL,
    incident TEXT,
    seq BIGINT,
    entry BLOB,
    logged_at BIGINT NOT NULL,
    PRIMARY KEY (organisation, position),
    CHECK ((incident IS NULL) = (seq IS NULL)),
    CHECK ((incident IS NULL) = (entry IS NOT NULL))
);
CREATE UNIQUE INDEX log_leaf_event ON log_leaf (incident, seq) WHERE incident IS NOT NULL;

-- The hashes of complete subtrees: what proofs are made of. Level 0 are the leaves.
CREATE TABLE log_node (
    organisation TEXT NOT NULL REFERENCES organisation (id),
    level BIGINT NOT NULL,
    position BIGINT NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (organisation, level, position)
);

-- What the log's key signed about it, and what witnesses and timestamp authorities answered.
CREATE TABLE log_checkpoint (
    organisation TEXT NOT NULL REFERENCES organisation (id),
    size BIGINT NOT NULL,
    note TEXT NOT NULL,
    made_at BIGINT NOT NULL,
    PRIMARY KEY (organisation, size)
);
CREATE TABLE log_anchor (
    organisation TEXT NOT NULL REFERENCES organisation (id),
    size BIGINT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    receipt BLOB NOT NULL,
    anchored_at BIGINT NOT NULL,
    PRIMARY KEY (organisation, size, kind, name)
);

-- What is logged is never changed.
CREATE TRIGGER log_leaf_no_update BEFORE UPDATE ON log_leaf
BEGIN SELECT RAISE(ABORT, 'log_leaf is append-only'); END;
CREATE TRIGGER log_leaf_no_delete BEFORE DELETE ON log_leaf
BEGIN SELECT RAISE(ABORT, 'log_leaf is append-only'); END;
CREATE TRIGGER log_leaf_no_replace BEFORE INSERT ON log_leaf
WHEN EXISTS (SELECT 1 FROM log_leaf WHERE organisation = NEW.organisation AND position = NEW.position)
BEGIN SELECT RAISE(ABORT, 'log_leaf is append-only'); END;
CREATE TRIGGER log_node_no_update BEFORE UPDATE ON log_node
BEGIN SELECT RAISE(ABORT, 'log_node is append-only'); END;
CREATE TRIGGER log_node_no_delete BEFORE DELETE ON log_node
BEGIN SELECT RAISE(ABORT, 'log_node is append-only'); END;
CREATE TRIGGER log_node_no_replace BEFORE INSERT ON log_node
WHEN EXISTS (SELECT 1 FROM log_node WHERE organisation = NEW.organisation AND level = NEW.level AND position = NEW.position)
BEGIN SELECT RAISE(ABORT, 'log_node is append-only'); END;
CREATE TRIGGER log_checkpoint_no_update BEFORE UPDATE ON log_checkpoint
BEGIN SELECT RAISE(ABORT, 'log_checkpoint is append-only'); END;
CREATE TRIGGER log_checkpoint_no_delete BEFORE DELETE ON log_checkpoint
BEGIN SELECT RAISE(ABORT, 'log_checkpoint is append-only'); END;
CREATE TRIGGER log_checkpoint_no_replace BEFORE INSERT ON log_checkpoint
WHEN EXISTS (SELECT 1 FROM log_checkpoint WHERE organisation = NEW.organisation AND size = NEW.size)
BEGIN SELECT RAISE(ABORT, 'log_checkpoint is append-only'); END;
CREATE TRIGGER log_anchor_no_update BEFORE UPDATE ON log_anchor
BEGIN SELECT RAISE(ABORT, 'log_anchor is append-only'); END;
CREATE TRIGGER log_anchor_no_delete BEFORE DELETE ON log_anchor
BEGIN SELECT RAISE(ABORT, 'log_anchor is append-only'); END;
CREATE TRIGGER log_anchor_no_replace BEFORE INSERT ON log_anchor
WHEN EXISTS (SELECT 1 FROM log_anchor WHERE organisation = NEW.organisation AND size = NEW.size AND kind = NEW.kind AND name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'log_anchor is append-only'); END;

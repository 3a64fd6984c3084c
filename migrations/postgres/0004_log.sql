-- The log of an organisation (RFC 6962): how many leaves, and the hashes of the complete subtrees at its right edge, 32 bytes
-- each, largest first.
CREATE TABLE log (
    organisation TEXT NOT NULL PRIMARY KEY REFERENCES organisation (id),
    size BIGINT NOT NULL DEFAULT 0,
    peaks BYTEA NOT NULL
);

-- Its leaves in order. The bytes of a signed event are the ledger's, `entry` is null then; those of all others are here.
CREATE TABLE log_leaf (
    organisation TEXT NOT NULL REFERENCES organisation (id),
    position BIGINT NOT NULL,
    kind TEXT NOT NULL,
    incident TEXT,
    seq BIGINT,
    entry BYTEA,
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
    hash BYTEA NOT NULL,
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
    receipt BYTEA NOT NULL,
    anchored_at BIGINT NOT NULL,
    PRIMARY KEY (organisation, size, kind, name)
);

-- What is logged is never changed.
CREATE TRIGGER log_leaf_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_leaf
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER log_node_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_node
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER log_checkpoint_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_checkpoint
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER log_anchor_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log_anchor
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();

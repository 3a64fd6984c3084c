CREATE TABLE organisation (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- `merge_holder`: the incident that may merge; a compare-and-set column, since merges of a project are one at a time.
-- `frozen`: why nothing is merged until a person lifts it. `credential` is sealed before it comes here.
CREATE TABLE project (
    id TEXT NOT NULL PRIMARY KEY,
    organisation TEXT NOT NULL REFERENCES organisation (id),
    url TEXT NOT NULL,
    repository_id TEXT NOT NULL,
    full_name TEXT NOT NULL,
    host TEXT NOT NULL,
    rules TEXT NOT NULL,
    rules_digest TEXT NOT NULL,
    intent TEXT NOT NULL,
    owner TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('draft', 'confirmed', 'paused')),
    frozen TEXT,
    draft_digest TEXT NOT NULL,
    credential BLOB NOT NULL,
    merge_holder TEXT,
    created_at BIGINT NOT NULL,
    confirmed_at BIGINT,
    UNIQUE (organisation, id),
    CHECK ((state = 'draft') = (confirmed_at IS NULL))
);

-- A repository is watched once; there may be any number of drafts.
CREATE UNIQUE INDEX project_watched ON project (organisation, host, repository_id) WHERE state <> 'draft';

-- `stage` and `closed_reason` are projections of the facts, for queries and pages. `version` is the fence of every commit.
-- `wake_at` is null when nothing more happens by itself. `quiet` is 1 after a rejection or an expiry, until a success.
-- `project_url` and `repository_id` are those at the opening: what the whole chain says.
CREATE TABLE incident (
    id TEXT NOT NULL PRIMARY KEY,
    organisation TEXT NOT NULL,
    project TEXT NOT NULL,
    project_url TEXT NOT NULL,
    repository_id TEXT NOT NULL,
    failure_key TEXT NOT NULL,
    failure TEXT NOT NULL,
    newest_run BIGINT NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    next_fact BIGINT NOT NULL DEFAULT 0,
    stage TEXT NOT NULL,
    closed_reason TEXT,
    quiet BIGINT NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)),
    opened_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    wake_at BIGINT,
    wait_reason TEXT,
    attempts BIGINT NOT NULL DEFAULT 0,
    lease_owner TEXT,
    lease_until BIGINT,
    UNIQUE (organisation, id),
    FOREIGN KEY (organisation, project) REFERENCES project (organisation, id),
    CHECK ((lease_owner IS NULL) = (lease_until IS NULL))
);

CREATE INDEX incident_due ON incident (wake_at) WHERE wake_at IS NOT NULL;

-- One open incident a key: a new failure of the key attaches to it. Blocked and escalated ones are open.
CREATE UNIQUE INDEX incident_open ON incident (project, failure_key) WHERE stage NOT IN ('resolved', 'closed');

CREATE TABLE fact (
    incident TEXT NOT NULL REFERENCES incident (id),
    ordinal BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (incident, ordinal)
);

-- Most kinds of fact are known once.
CREATE UNIQUE INDEX fact_once ON fact (incident, kind)
    WHERE kind NOT IN ('link-sent', 'merging', 'merge-asked', 'merge-void', 'recovered');

-- Drafts: unsigned statements, committed before they are signed, so that after a crash the identical bytes are signed.
CREATE TABLE statement (
    incident TEXT NOT NULL REFERENCES incident (id),
    seq BIGINT NOT NULL,
    role TEXT NOT NULL,
    statement BLOB NOT NULL,
    pae TEXT NOT NULL,
    PRIMARY KEY (incident, seq)
);

-- Where the next draft and the next signed event go, and the digests they link to.
CREATE TABLE chain (
    incident TEXT NOT NULL PRIMARY KEY REFERENCES incident (id),
    next_draft BIGINT NOT NULL DEFAULT 0,
    draft_head TEXT,
    next_seq BIGINT NOT NULL DEFAULT 0,
    head TEXT
);

-- Signed events. Everything after `envelope` is derived from it, and derived again by whoever verifies.
CREATE TABLE ledger (
    incident TEXT NOT NULL REFERENCES incident (id),
    seq BIGINT NOT NULL,
    envelope BLOB NOT NULL,
    type TEXT NOT NULL,
    role TEXT NOT NULL,
    keyid TEXT NOT NULL,
    event_id TEXT NOT NULL,
    prev TEXT,
    pae TEXT NOT NULL,
    occurred_at BIGINT NOT NULL
);
-- No primary key, so that whoever tampers meets the verifier and not a constraint: trigger ledger_no_replace keeps positions
-- unique for all who write through the schema, of whom SQLite lets one write at a time.
CREATE INDEX ledger_by_incident ON ledger (incident, seq);

CREATE TABLE evidence (
    organisation TEXT NOT NULL REFERENCES organisation (id),
    digest TEXT NOT NULL,
    media_type TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (organisation, digest)
);

-- Approval links. `token` is the hash of a nonce that is kept nowhere.
CREATE TABLE approval (
    id TEXT NOT NULL PRIMARY KEY,
    organisation TEXT NOT NULL,
    incident TEXT NOT NULL,
    token TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL,
    principal TEXT NOT NULL,
    issued_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    consumed_at BIGINT,
    decision TEXT,
    FOREIGN KEY (organisation, incident) REFERENCES incident (organisation, id),
    CHECK ((consumed_at IS NULL) = (decision IS NULL))
);

CREATE INDEX approval_incident ON approval (incident);

-- One live link an incident.
CREATE UNIQUE INDEX approval_live ON approval (incident) WHERE revoked_at IS NULL AND consumed_at IS NULL;

-- Runs that were looked at, and failed jobs that were turned into an incident.
CREATE TABLE seen_run (
    project TEXT NOT NULL REFERENCES project (id),
    run_id BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (project, run_id, attempt)
);

CREATE TABLE seen_job (
    project TEXT NOT NULL REFERENCES project (id),
    run_id BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    job TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (project, run_id, attempt, job)
);

-- The history beside the signed chain.
CREATE TABLE audit_event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    organisation TEXT NOT NULL REFERENCES organisation (id),
    incident TEXT,
    project TEXT,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL,
    at BIGINT NOT NULL,
    FOREIGN KEY (organisation, incident) REFERENCES incident (organisation, id),
    FOREIGN KEY (organisation, project) REFERENCES project (organisation, id)
);

CREATE INDEX audit_event_incident ON audit_event (incident);

-- Messages that wait for delivery.
CREATE TABLE notice (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    organisation TEXT NOT NULL,
    incident TEXT NOT NULL,
    event TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    due_at BIGINT,
    attempts BIGINT NOT NULL DEFAULT 0,
    delivered_at BIGINT,
    FOREIGN KEY (organisation, incident) REFERENCES incident (organisation, id)
);

CREATE INDEX notice_due ON notice (due_at) WHERE due_at IS NOT NULL;

-- What is known is never changed. INSERT OR REPLACE deletes without firing delete triggers, hence the third of each.
CREATE TRIGGER fact_no_update BEFORE UPDATE ON fact
BEGIN SELECT RAISE(ABORT, 'fact is append-only'); END;
CREATE TRIGGER fact_no_delete BEFORE DELETE ON fact
BEGIN SELECT RAISE(ABORT, 'fact is append-only'); END;
CREATE TRIGGER fact_no_replace BEFORE INSERT ON fact
WHEN EXISTS (
    SELECT 1 FROM fact WHERE incident = NEW.incident AND (ordinal = NEW.ordinal OR kind = NEW.kind
        AND kind NOT IN ('link-sent', 'merging', 'merge-asked', 'merge-void', 'recovered')))
BEGIN SELECT RAISE(ABORT, 'fact is append-only'); END;
CREATE TRIGGER statement_no_update BEFORE UPDATE ON statement
BEGIN SELECT RAISE(ABORT, 'statement is append-only'); END;
CREATE TRIGGER statement_no_delete BEFORE DELETE ON statement
BEGIN SELECT RAISE(ABORT, 'statement is append-only'); END;
CREATE TRIGGER statement_no_replace BEFORE INSERT ON statement
WHEN EXISTS (SELECT 1 FROM statement WHERE incident = NEW.incident AND seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'statement is append-only'); END;
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END;
CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger
WHEN EXISTS (SELECT 1 FROM ledger WHERE incident = NEW.incident AND seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END;
CREATE TRIGGER evidence_no_update BEFORE UPDATE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER evidence_no_delete BEFORE DELETE ON evidence
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER evidence_no_replace BEFORE INSERT ON evidence
WHEN EXISTS (SELECT 1 FROM evidence WHERE organisation = NEW.organisation AND digest = NEW.digest AND bytes <> NEW.bytes)
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER audit_event_no_update BEFORE UPDATE ON audit_event
BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END;
CREATE TRIGGER audit_event_no_delete BEFORE DELETE ON audit_event
BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END;
CREATE TRIGGER audit_event_no_replace BEFORE INSERT ON audit_event
WHEN EXISTS (SELECT 1 FROM audit_event WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'audit_event is append-only'); END;

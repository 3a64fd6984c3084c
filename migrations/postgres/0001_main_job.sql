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
    credential BYTEA NOT NULL,
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
    statement BYTEA NOT NULL,
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
    envelope BYTEA NOT NULL,
    type TEXT NOT NULL,
    role TEXT NOT NULL,
    keyid TEXT NOT NULL,
    event_id TEXT NOT NULL,
    prev TEXT,
    pae TEXT NOT NULL,
    occurred_at BIGINT NOT NULL,
    PRIMARY KEY (incident, seq)
);

CREATE TABLE evidence (
    organisation TEXT NOT NULL REFERENCES organisation (id),
    digest TEXT NOT NULL,
    media_type TEXT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (organisation, digest),
    CHECK (digest = encode(sha256(bytes), 'hex'))
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
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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

-- What is known is never changed.
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER fact_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fact
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER statement_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON statement
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER evidence_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON evidence
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER audit_event_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_event
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();

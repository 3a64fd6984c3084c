-- Calls of tools that wait for a person, and what was answered.
CREATE TABLE tool_call (
    id TEXT NOT NULL PRIMARY KEY,
    organisation TEXT NOT NULL REFERENCES organisation (id),
    session TEXT NOT NULL,
    task TEXT NOT NULL,
    role TEXT NOT NULL,
    tool TEXT NOT NULL,
    -- The arguments as a person is shown them, and the SHA-256 of all of them with members in order.
    arguments TEXT NOT NULL,
    arguments_sha256 TEXT NOT NULL,
    -- Whoever answers repeats it: the answer is to this question.
    nonce TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- allow, reject or always; once there is one, nothing of the row changes any more.
    decision TEXT,
    decider TEXT,
    reason TEXT,
    resolved_at BIGINT
);
CREATE INDEX tool_call_pending ON tool_call (organisation, created_at) WHERE decision IS NULL;
CREATE TRIGGER tool_call_resolved_once BEFORE UPDATE ON tool_call WHEN OLD.decision IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a resolved tool call does not change'); END;
CREATE TRIGGER tool_call_no_delete BEFORE DELETE ON tool_call
BEGIN SELECT RAISE(ABORT, 'tool_call is append-only'); END;

-- Calls that a person allows always: a tool with exactly these arguments.
CREATE TABLE always_allow (
    id TEXT NOT NULL PRIMARY KEY,
    organisation TEXT NOT NULL REFERENCES organisation (id),
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    arguments_sha256 TEXT NOT NULL,
    decider TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_by TEXT,
    revoked_at BIGINT
);
CREATE UNIQUE INDEX always_allow_live ON always_allow (organisation, tool, arguments_sha256) WHERE revoked_at IS NULL;

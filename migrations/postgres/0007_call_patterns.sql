-- Where a call is made: what a pattern for it is bound to (JSON; {} for calls of before).
ALTER TABLE tool_call ADD COLUMN origin TEXT NOT NULL DEFAULT '{}';

-- Calls of a tool that a person allows always by a pattern, in one project or worktree.
CREATE TABLE call_pattern (
    id TEXT NOT NULL PRIMARY KEY,
    organisation TEXT NOT NULL REFERENCES organisation (id),
    scope TEXT NOT NULL,
    tool TEXT NOT NULL,
    pattern TEXT NOT NULL,
    decider TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_by TEXT,
    revoked_at BIGINT
);
CREATE UNIQUE INDEX call_pattern_live ON call_pattern (organisation, scope, tool, pattern) WHERE revoked_at IS NULL;

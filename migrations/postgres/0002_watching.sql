-- Projects say what of them is watched and when. A removed one keeps its history; its credential is emptied.
ALTER TABLE project ADD COLUMN watch TEXT NOT NULL DEFAULT 'ci' CHECK (watch IN ('ci', 'health'));
ALTER TABLE project ADD COLUMN health TEXT NOT NULL DEFAULT '[]';
ALTER TABLE project ADD COLUMN schedule TEXT;
ALTER TABLE project ADD COLUMN removed_at BIGINT;
DROP INDEX project_watched;
CREATE UNIQUE INDEX project_watched ON project (organisation, host, repository_id) WHERE state <> 'draft' AND removed_at IS NULL;

-- `signature`: the normalised error of the failure, where its log could be read. `linked_to`: the incident of the same key that
-- was already being fixed when this other error appeared.
ALTER TABLE incident ADD COLUMN signature TEXT;
ALTER TABLE incident ADD COLUMN linked_to TEXT REFERENCES incident (id);

DROP INDEX fact_once;
CREATE UNIQUE INDEX fact_once ON fact (incident, kind)
    WHERE kind NOT IN ('link-sent', 'merging', 'merge-asked', 'merge-void', 'recovered', 'recurred');

-- Messages about a project that concern no incident.
ALTER TABLE notice ALTER COLUMN incident DROP NOT NULL;
ALTER TABLE notice ADD COLUMN project TEXT;
ALTER TABLE notice ADD FOREIGN KEY (organisation, project) REFERENCES project (organisation, id);
ALTER TABLE notice ADD CHECK (incident IS NOT NULL OR project IS NOT NULL);

CREATE INDEX audit_event_project ON audit_event (project) WHERE incident IS NULL;

-- When a project is looked at next, by whom, and what the last look showed. `condition` says how the repository can be reached,
-- since `since`, with the provider's words in `detail` and what to do in `mend`. `hinted_at`: somebody says that there is news.
-- `requests` and `unchanged` count since `counted_from`; `lag` is how old the newest failure was when it was seen, in ms;
-- `budget` is what is left of the credential's limits, as JSON.
CREATE TABLE project_watch (
    project TEXT NOT NULL PRIMARY KEY REFERENCES project (id),
    next_at BIGINT NOT NULL,
    lease_owner TEXT,
    lease_until BIGINT,
    hinted_at BIGINT,
    looked_at BIGINT,
    answered_at BIGINT,
    condition TEXT NOT NULL DEFAULT 'fine',
    since BIGINT,
    detail TEXT,
    mend TEXT,
    lag BIGINT,
    requests BIGINT NOT NULL DEFAULT 0,
    unchanged BIGINT NOT NULL DEFAULT 0,
    counted_from BIGINT NOT NULL DEFAULT 0,
    budget TEXT,
    CHECK ((lease_owner IS NULL) = (lease_until IS NULL))
);
CREATE INDEX project_watch_due ON project_watch (next_at);

-- What is known of a workflow beside its runs: whether it is active, when its file says that it runs, and how long its
-- successes take. `facts` is JSON.
CREATE TABLE workflow_watch (
    project TEXT NOT NULL REFERENCES project (id),
    workflow_id BIGINT NOT NULL,
    facts TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (project, workflow_id)
);

-- Each health endpoint's state, as JSON, and when it is asked next.
CREATE TABLE health_watch (
    project TEXT NOT NULL REFERENCES project (id),
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    next_at BIGINT NOT NULL,
    lease_owner TEXT,
    lease_until BIGINT,
    PRIMARY KEY (project, name),
    CHECK ((lease_owner IS NULL) = (lease_until IS NULL))
);

-- Webhook deliveries that arrived, and the newest version that was heard of each object.
CREATE TABLE hook_delivery (
    delivery TEXT NOT NULL PRIMARY KEY,
    received_at BIGINT NOT NULL
);
CREATE INDEX hook_delivery_age ON hook_delivery (received_at);
CREATE TABLE hook_object (
    object TEXT NOT NULL PRIMARY KEY,
    version TEXT NOT NULL,
    received_at BIGINT NOT NULL
);
CREATE INDEX hook_object_age ON hook_object (received_at);

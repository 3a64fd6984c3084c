-- Whose a document is: it goes only when every incident that it belongs to has let it go. Documents from before this table are
-- everybody's (no incident) and stay.
CREATE TABLE evidence_use (
    organisation TEXT NOT NULL,
    digest TEXT NOT NULL,
    incident TEXT NOT NULL,
    PRIMARY KEY (organisation, digest, incident),
    FOREIGN KEY (organisation) REFERENCES organisation (id)
);
CREATE INDEX evidence_use_incident ON evidence_use (incident);
INSERT INTO evidence_use (organisation, digest, incident) SELECT organisation, digest, '' FROM evidence;

-- What a signed gap, event `seq` of its incident, says to be gone.
CREATE TABLE evidence_gap (
    organisation TEXT NOT NULL,
    digest TEXT NOT NULL,
    incident TEXT NOT NULL REFERENCES incident (id),
    seq BIGINT NOT NULL,
    PRIMARY KEY (organisation, digest, incident, seq)
);

DROP TRIGGER evidence_no_delete;
CREATE TRIGGER evidence_no_delete BEFORE DELETE ON evidence
WHEN NOT EXISTS (SELECT 1 FROM evidence_gap g WHERE g.organisation = OLD.organisation AND g.digest = OLD.digest)
    OR EXISTS (
        SELECT 1 FROM evidence_use u WHERE u.organisation = OLD.organisation AND u.digest = OLD.digest
        AND NOT EXISTS (
            SELECT 1 FROM evidence_gap g WHERE g.organisation = u.organisation AND g.digest = u.digest AND g.incident = u.incident))
BEGIN SELECT RAISE(ABORT, 'evidence is append-only'); END;
CREATE TRIGGER evidence_use_no_update BEFORE UPDATE ON evidence_use
BEGIN SELECT RAISE(ABORT, 'evidence_use is append-only'); END;
CREATE TRIGGER evidence_use_no_delete BEFORE DELETE ON evidence_use
BEGIN SELECT RAISE(ABORT, 'evidence_use is append-only'); END;
CREATE TRIGGER evidence_gap_no_update BEFORE UPDATE ON evidence_gap
BEGIN SELECT RAISE(ABORT, 'evidence_gap is append-only'); END;
CREATE TRIGGER evidence_gap_no_delete BEFORE DELETE ON evidence_gap
BEGIN SELECT RAISE(ABORT, 'evidence_gap is append-only'); END;

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

DROP TRIGGER evidence_append_only ON evidence;
CREATE TRIGGER evidence_append_only BEFORE UPDATE OR TRUNCATE ON evidence
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE FUNCTION evidence_goes_by_gap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM evidence_gap g WHERE g.organisation = OLD.organisation AND g.digest = OLD.digest)
        OR EXISTS (
            SELECT 1 FROM evidence_use u WHERE u.organisation = OLD.organisation AND u.digest = OLD.digest
            AND NOT EXISTS (
                SELECT 1 FROM evidence_gap g WHERE g.organisation = u.organisation AND g.digest = u.digest AND g.incident = u.incident))
    THEN
        RAISE EXCEPTION 'evidence is append-only';
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER evidence_goes_by_gap BEFORE DELETE ON evidence
    FOR EACH ROW EXECUTE FUNCTION evidence_goes_by_gap();
CREATE TRIGGER evidence_use_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON evidence_use
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER evidence_gap_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON evidence_gap
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();

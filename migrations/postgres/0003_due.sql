-- Confirming a project makes it due; before, each look for work looked through all projects for new ones.
INSERT INTO project_watch (project, next_at) SELECT p.id, 0 FROM project p WHERE p.state = 'confirmed' AND p.removed_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM project_watch w WHERE w.project = p.id);

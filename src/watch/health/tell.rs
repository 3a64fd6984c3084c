//! Telling what happened: incidents open and close, people hear of certificates, the project's history shows all of it.

use super::round::HealthWatch;
use super::state::Transition;
use crate::change::Oid;
use crate::clock::Millis;
use crate::config::{HealthCheck, rules_from_yaml};
use crate::connector::Connector;
use crate::id::{Entropy, IncidentId};
use crate::incident::{AuditEvent, Failure, FailureKind, incident_key};
use crate::store::{Observed, Project};

/// The scope of the incidents of health checks, where runs have the event that triggered them.
const SCOPE: &str = "health";

/// One endpoint of one project.
pub(super) struct Endpoint<'a> {
    pub(super) project: &'a Project,
    pub(super) check: &'a HealthCheck,
    pub(super) connector: &'a dyn Connector,
}

impl Endpoint<'_> {
    /// The branch that incidents are about.
    fn base(&self) -> Result<String, String> {
        let name = format!("rules of {}", self.project.id);
        let rules = rules_from_yaml(self.project.rules.as_bytes(), &name);
        rules
            .map(|rules| rules.base.0)
            .map_err(|error| error.to_string())
    }

    /// The deployed commit where the endpoint tells it, else the base branch's tip.
    async fn commit(&self, told: Option<Oid>, base: &str) -> Result<Oid, String> {
        if let Some(told) = told {
            return Ok(told);
        }
        let tip = self.connector.branch(base).await;
        tip.map_err(|error| error.to_string())?
            .ok_or_else(|| format!("there is no branch {base}"))
    }
}

impl HealthWatch {
    /// Tells one thing. It may be told again when the process ends before that is written down; an incident is opened and
    /// closed once all the same, since the outage has a number.
    pub(super) async fn tell(
        &self,
        endpoint: &Endpoint<'_>,
        transition: &Transition,
        now: Millis,
    ) -> Result<(), String> {
        match transition {
            Transition::Opened {
                outage,
                reason,
                commit,
                ..
            } => self.open(endpoint, *outage, *commit, reason, now).await,
            Transition::Closed { outage, since } => {
                self.close(endpoint, *outage, *since, now).await
            }
            Transition::CertificateEnds { days } => self.warn(endpoint, *days, now).await,
        }
    }

    async fn open(
        &self,
        endpoint: &Endpoint<'_>,
        outage: u64,
        commit: Option<Oid>,
        reason: &str,
        now: Millis,
    ) -> Result<(), String> {
        let Endpoint { project, check, .. } = endpoint;
        let base = endpoint.base()?;
        let failure = Failure {
            kind: FailureKind::Health,
            workflow_id: 0,
            workflow: Some(check.name.clone()),
            scope: SCOPE.to_owned(),
            commit: endpoint.commit(commit, &base).await?,
            base_ref: base,
            job: Some(check.name.clone()),
            job_id: None,
            run_id: outage,
            attempt: 1,
            url: Some(check.url.without_query().to_owned()),
            detail: Some(reason.to_owned()),
        };
        let mut entropy = Entropy::default();
        (self.random)(&mut entropy).map_err(|error| error.to_string())?;
        let id = IncidentId::new(now, entropy);
        let observed = self.store.observe(project, &failure, None, &id, now).await;
        match observed.map_err(|error| error.to_string())? {
            Observed::Opened(incident) => {
                tracing::info!(project = %project.id, check = check.name, %incident, "an outage became an incident");
            }
            Observed::Attached(_) | Observed::Known | Observed::Suppressed => {}
        }
        let detail = format!("{}: {reason}", check.name);
        self.record(project, "health-down", detail, now).await
    }

    async fn close(
        &self,
        endpoint: &Endpoint<'_>,
        outage: u64,
        since: Millis,
        now: Millis,
    ) -> Result<(), String> {
        let Endpoint { project, check, .. } = endpoint;
        let base = endpoint.base()?;
        let key = incident_key(&project.id, 0, SCOPE, &base, Some(&check.name));
        // An outage is kept as attempt 1; what comes after it is later.
        let observed = self
            .store
            .observe_success(project, &key, outage, 2, now)
            .await;
        observed.map_err(|error| error.to_string())?;
        let detail = format!("{}: it was down since {since}", check.name);
        self.record(project, "health-up", detail, now).await
    }

    async fn warn(&self, endpoint: &Endpoint<'_>, days: i64, now: Millis) -> Result<(), String> {
        let Endpoint { project, check, .. } = endpoint;
        let when = match days {
            ..=0 => "within a day".to_owned(),
            1 => "in 1 day".to_owned(),
            days => format!("in {days} days"),
        };
        let text = format!(
            "{}: the certificate of health check {} ({}) ends {when}",
            project.full_name, check.name, check.url
        );
        let told = self
            .store
            .tell_of_project(
                &project.organisation,
                &project.id,
                "certificate-ends",
                &text,
                now,
            )
            .await;
        told.map_err(|error| error.to_string())
    }

    /// Writes into the project's history.
    pub(super) async fn record(
        &self,
        project: &Project,
        kind: &'static str,
        detail: String,
        now: Millis,
    ) -> Result<(), String> {
        let event = AuditEvent { kind, detail };
        let recorded = self
            .store
            .record(&project.organisation, None, Some(&project.id), &event, now)
            .await;
        recorded.map_err(|error| error.to_string())
    }
}

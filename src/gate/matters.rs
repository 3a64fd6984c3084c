//! What is consequential without any rule of the project.
//!
//! | matter | recognised by | effect |
//! |---|---|---|
//! | workflow | `.github/workflows/**` | denied, or class infrastructure with `workflows: approve` |
//! | repository settings | `.github/**` | class infrastructure |
//! | code owners | `CODEOWNERS`, `docs/CODEOWNERS` (and under `.github`) | class infrastructure |
//! | checkout settings | `.gitattributes`, `.gitmodules`, `.lfsconfig` in any folder | class infrastructure: they change what checkouts contain |
//! | dependencies | manifests and lockfiles in any folder | approval, or what `dependencies` says for the measured version step |
//! | symbolic link | mode on either side | approval |
//! | submodule | mode on either side | approval: other code comes in by a pointer |
//! | executable bit | a file that becomes executable, or is added so | approval |

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::change::{FileChange, Mode};

use super::Class;
use super::glob::{Globs, PathForms};

/// A built-in matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Matter {
    /// A CI workflow.
    Workflow,
    /// A setting of the repository.
    Repository,
    /// Who must review what.
    CodeOwners,
    /// What a checkout contains.
    Checkout,
    /// A manifest or lockfile.
    Dependencies,
    /// A symbolic link.
    Symlink,
    /// A submodule's commit.
    Submodule,
    /// A file that becomes executable.
    Executable,
}

impl Matter {
    /// The name that decisions carry, after `built-in: `.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Repository => "repository settings",
            Self::CodeOwners => "code owners",
            Self::Checkout => "checkout settings",
            Self::Dependencies => "dependencies",
            Self::Symlink => "symbolic link",
            Self::Submodule => "submodule",
            Self::Executable => "executable bit",
        }
    }

    /// The class that the matter gives a change.
    pub const fn class(self) -> Class {
        match self {
            Self::Workflow | Self::Repository | Self::CodeOwners | Self::Checkout => {
                Class::Infrastructure
            }
            Self::Dependencies | Self::Symlink | Self::Submodule | Self::Executable => {
                Class::Functional
            }
        }
    }
}

/// The glob under which workflows are denied.
pub const WORKFLOWS: &str = ".github/workflows/**";

const BY_NAME: &[(&str, Matter)] = &[
    (WORKFLOWS, Matter::Workflow),
    (".github/**", Matter::Repository),
    ("{CODEOWNERS,docs/CODEOWNERS}", Matter::CodeOwners),
    (
        "**/{.gitattributes,.gitmodules,.lfsconfig}",
        Matter::Checkout,
    ),
    ("**/{Cargo.lock,Cargo.toml}", Matter::Dependencies),
    (
        "**/{package.json,package-lock.json,npm-shrinkwrap.json,yarn.lock,pnpm-lock.yaml,bun.lock,bun.lockb}",
        Matter::Dependencies,
    ),
    (
        "**/{deno.json,deno.jsonc,deno.lock,jsr.json}",
        Matter::Dependencies,
    ),
    (
        "**/{pyproject.toml,setup.py,setup.cfg,requirements*.txt,constraints*.txt,Pipfile,Pipfile.lock}",
        Matter::Dependencies,
    ),
    (
        "**/{poetry.lock,pdm.lock,uv.lock,pixi.lock,pixi.toml,environment.yml,conda-lock.yml}",
        Matter::Dependencies,
    ),
    (
        "**/{go.mod,go.sum,go.work,go.work.sum}",
        Matter::Dependencies,
    ),
    (
        "**/{Gemfile,Gemfile.lock,*.gemspec,composer.json,composer.lock}",
        Matter::Dependencies,
    ),
    (
        "**/{pom.xml,build.gradle,build.gradle.kts,settings.gradle,settings.gradle.kts,*.lockfile,libs.versions.toml}",
        Matter::Dependencies,
    ),
    (
        "**/{packages.lock.json,packages.config,*.csproj,*.fsproj,Directory.Packages.props,paket.dependencies,paket.lock}",
        Matter::Dependencies,
    ),
    (
        "**/{Package.swift,Package.resolved,Podfile,Podfile.lock,Cartfile,Cartfile.resolved,pubspec.yaml,pubspec.lock}",
        Matter::Dependencies,
    ),
    (
        "**/{mix.exs,mix.lock,rebar.config,rebar.lock,*.cabal,cabal.project.freeze,stack.yaml,stack.yaml.lock}",
        Matter::Dependencies,
    ),
    (
        "**/{flake.nix,flake.lock,MODULE.bazel,MODULE.bazel.lock,conanfile.txt,conanfile.py,conan.lock,vcpkg.json}",
        Matter::Dependencies,
    ),
    (
        "**/{.terraform.lock.hcl,Chart.yaml,Chart.lock}",
        Matter::Dependencies,
    ),
];

static GLOBS: LazyLock<Option<Globs>> =
    LazyLock::new(|| Globs::compile(BY_NAME.iter().map(|(glob, _)| *glob)).ok());

/// The matters that a path alone raises, each once.
pub(super) fn by_name(path: &PathForms<'_>) -> BTreeSet<Matter> {
    let Some(globs) = GLOBS.as_ref() else {
        // A table that does not compile is caught by the tests; were it not, nothing may pass as unremarkable.
        return BTreeSet::from([Matter::Workflow]);
    };
    globs
        .matches(path)
        .into_iter()
        .filter_map(|index| BY_NAME.get(index).map(|(_, matter)| *matter))
        .collect()
}

/// The matter that an entry's modes raise.
pub(super) fn by_mode(entry: &FileChange) -> Option<Matter> {
    let modes = [entry.old.mode, entry.new.mode];
    if modes.contains(&Mode::Gitlink) {
        Some(Matter::Submodule)
    } else if modes.contains(&Mode::Symlink) {
        Some(Matter::Symlink)
    } else if entry.new.mode == Mode::Executable && entry.old.mode != Mode::Executable {
        Some(Matter::Executable)
    } else {
        None
    }
}

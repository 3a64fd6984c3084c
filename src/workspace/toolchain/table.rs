//! What is known about ecosystems, as data.

use serde::{Deserialize, Serialize};

/// A language or build system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ecosystem {
    /// Cargo packages.
    Rust,
    /// Packages with a `package.json`.
    Node,
    /// Deno projects.
    Deno,
    /// Python projects.
    Python,
    /// Go modules.
    Go,
    /// Maven and Gradle projects.
    Java,
    /// Ruby projects with Bundler.
    Ruby,
    /// PHP projects with Composer.
    Php,
    /// Elixir projects.
    Elixir,
    /// .NET solutions.
    Dotnet,
    /// Swift packages.
    Swift,
    /// OCaml projects with Dune.
    Ocaml,
    /// Haskell packages.
    Haskell,
    /// Gleam projects.
    Gleam,
    /// Bazel workspaces.
    Bazel,
    /// C and C++ with `CMake` or Meson.
    Native,
    /// A Makefile.
    Make,
    /// Another task runner.
    Tasks,
    /// A command named by the project's rules, of which nothing else is known.
    Configured,
}

impl Ecosystem {
    /// Its name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Node => "node",
            Self::Deno => "deno",
            Self::Python => "python",
            Self::Go => "go",
            Self::Java => "java",
            Self::Ruby => "ruby",
            Self::Php => "php",
            Self::Elixir => "elixir",
            Self::Dotnet => "dotnet",
            Self::Swift => "swift",
            Self::Ocaml => "ocaml",
            Self::Haskell => "haskell",
            Self::Gleam => "gleam",
            Self::Bazel => "bazel",
            Self::Native => "native",
            Self::Make => "make",
            Self::Tasks => "tasks",
            Self::Configured => "configured",
        }
    }

    /// Whether it only calls other tools: it counts where no language was found.
    pub(super) const fn is_task_runner(self) -> bool {
        matches!(self, Self::Make | Self::Tasks)
    }

    /// Globs of its test files, relative to the project's root.
    pub(super) const fn test_globs(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &[
                "**/tests/**",
                "**/benches/**",
                "**/tests.rs",
                "**/test.rs",
                "**/test_*.rs",
                "**/*_test.rs",
                "**/*_tests.rs",
                "**/*.snap",
            ],
            Self::Node | Self::Deno => &[
                "**/*.{test,spec}.{js,mjs,cjs,jsx,ts,mts,cts,tsx}",
                "**/*_test.{js,mjs,ts,tsx}",
                "**/{test,tests,__tests__,__snapshots__,__mocks__}/**",
                "**/test.{js,mjs,cjs,ts}",
            ],
            Self::Python => &[
                "**/test_*.py",
                "**/*_test.py",
                "**/tests.py",
                "**/conftest.py",
                "**/{test,tests}/**",
            ],
            Self::Go => &["**/*_test.go", "**/testdata/**"],
            Self::Java => &["**/src/{test,integrationTest}/**"],
            Self::Ruby => &["**/{spec,test}/**", "**/*_{spec,test}.rb"],
            Self::Php => &["**/{tests,test}/**", "**/*Test.php"],
            Self::Elixir | Self::Ocaml | Self::Gleam => &["**/test/**"],
            Self::Dotnet => &["**/*{Test,Tests}/**", "**/*{Test,Tests}.{cs,fs,vb}"],
            Self::Swift => &["**/Tests/**"],
            Self::Haskell => &["**/{test,tests}/**", "**/*Spec.hs"],
            Self::Bazel | Self::Native | Self::Make | Self::Tasks | Self::Configured => &[
                "**/{test,tests,spec,testdata}/**",
                "**/test_*",
                "**/*_test.*",
                "**/*.{test,spec}.*",
            ],
        }
    }

    /// The ecosystem that a program belongs to.
    pub(super) fn of_program(program: &str) -> Option<Self> {
        let name = program.rsplit('/').next().unwrap_or(program);
        Some(match name {
            "cargo" => Self::Rust,
            "npm" | "npx" | "pnpm" | "yarn" | "bun" | "node" => Self::Node,
            "deno" => Self::Deno,
            "pytest" | "tox" | "nox" | "uv" | "poetry" | "pdm" | "pipenv" => Self::Python,
            _ if name.starts_with("python") => Self::Python,
            "go" => Self::Go,
            "mvn" | "mvnw" | "gradle" | "gradlew" => Self::Java,
            "bundle" | "rake" | "rspec" => Self::Ruby,
            "composer" | "phpunit" => Self::Php,
            "mix" => Self::Elixir,
            "dotnet" => Self::Dotnet,
            "swift" => Self::Swift,
            "dune" => Self::Ocaml,
            "cabal" | "stack" => Self::Haskell,
            "gleam" => Self::Gleam,
            "bazel" | "bazelisk" => Self::Bazel,
            "ctest" | "cmake" | "meson" => Self::Native,
            "make" | "gmake" => Self::Make,
            "just" | "task" | "mise" => Self::Tasks,
            _ => return None,
        })
    }
}

/// A marker whose presence alone says how tests are run.
pub(super) struct Marker {
    pub(super) ecosystem: Ecosystem,
    /// A file name, or `*` and an ending.
    pub(super) file: &'static str,
    pub(super) manager: &'static str,
    pub(super) test: &'static [&'static str],
    pub(super) why: &'static str,
    pub(super) confidence: u16,
}

const fn marker(
    ecosystem: Ecosystem,
    file: &'static str,
    manager: &'static str,
    test: &'static [&'static str],
    why: &'static str,
) -> Marker {
    Marker {
        ecosystem,
        file,
        manager,
        test,
        why,
        confidence: 700,
    }
}

/// Ecosystems without rules of their own. Of one ecosystem the first row that fits counts.
pub(super) const MARKERS: &[Marker] = &[
    marker(
        Ecosystem::Go,
        "go.mod",
        "go",
        &["go", "test", "./..."],
        "a Go module",
    ),
    marker(
        Ecosystem::Deno,
        "deno.json",
        "deno",
        &["deno", "test", "--no-remote"],
        "a Deno project",
    ),
    marker(
        Ecosystem::Deno,
        "deno.jsonc",
        "deno",
        &["deno", "test", "--no-remote"],
        "a Deno project",
    ),
    marker(
        Ecosystem::Java,
        "mvnw",
        "maven",
        &["./mvnw", "-B", "-o", "test"],
        "Maven's wrapper",
    ),
    marker(
        Ecosystem::Java,
        "pom.xml",
        "maven",
        &["mvn", "-B", "-o", "test"],
        "a Maven project",
    ),
    marker(
        Ecosystem::Java,
        "gradlew",
        "gradle",
        &["./gradlew", "--offline", "test"],
        "Gradle's wrapper",
    ),
    marker(
        Ecosystem::Java,
        "build.gradle",
        "gradle",
        &["gradle", "--offline", "test"],
        "a Gradle project",
    ),
    marker(
        Ecosystem::Java,
        "build.gradle.kts",
        "gradle",
        &["gradle", "--offline", "test"],
        "a Gradle project",
    ),
    marker(
        Ecosystem::Php,
        "composer.json",
        "composer",
        &["vendor/bin/phpunit"],
        "a Composer project",
    ),
    marker(
        Ecosystem::Elixir,
        "mix.exs",
        "mix",
        &["mix", "test"],
        "a Mix project",
    ),
    marker(
        Ecosystem::Dotnet,
        "*.sln",
        "dotnet",
        &["dotnet", "test"],
        "a .NET solution",
    ),
    marker(
        Ecosystem::Dotnet,
        "*.csproj",
        "dotnet",
        &["dotnet", "test"],
        "a .NET project",
    ),
    marker(
        Ecosystem::Swift,
        "Package.swift",
        "swift",
        &["swift", "test"],
        "a Swift package",
    ),
    marker(
        Ecosystem::Ocaml,
        "dune-project",
        "dune",
        &["dune", "test"],
        "a Dune project",
    ),
    marker(
        Ecosystem::Haskell,
        "*.cabal",
        "cabal",
        &["cabal", "test", "--offline"],
        "a Cabal package",
    ),
    marker(
        Ecosystem::Gleam,
        "gleam.toml",
        "gleam",
        &["gleam", "test"],
        "a Gleam project",
    ),
    marker(
        Ecosystem::Bazel,
        "MODULE.bazel",
        "bazel",
        &["bazel", "test", "//..."],
        "a Bazel module",
    ),
    marker(
        Ecosystem::Bazel,
        "WORKSPACE",
        "bazel",
        &["bazel", "test", "//..."],
        "a Bazel workspace",
    ),
    marker(
        Ecosystem::Native,
        "meson.build",
        "meson",
        &["meson", "test", "-C", "build"],
        "a Meson project",
    ),
    marker(
        Ecosystem::Native,
        "CMakeLists.txt",
        "cmake",
        &["ctest", "--test-dir", "build"],
        "a CMake project",
    ),
];

//! The `stegodon` program.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use stegodon::{Cluster, Database, Endpoints, SqlError, SqlResult, Style, TextTable};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Stegodon serves PostgreSQL's own data directories.
#[derive(Parser)]
#[command(name = "stegodon", version)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a data directory to psql, pgbench and every driver.
    Serve(Serve),
    /// Run SQL on a data directory, without a server.
    Sql(Sql),
}

#[derive(Args)]
struct Serve {
    /// The data directory, made by PostgreSQL 15 to 18 and cleanly shut down.
    #[arg(short = 'D', value_name = "DIR")]
    directory: PathBuf,
    /// A setting, name=value; may be given several times.
    #[arg(short = 'c', value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

#[derive(Args)]
struct Sql {
    /// The data directory.
    #[arg(short = 'D', value_name = "DIR")]
    directory: PathBuf,
    /// The statements.
    #[arg(short = 'c', value_name = "SQL")]
    command: String,
    /// The database.
    #[arg(short = 'd', value_name = "DATABASE", default_value = "postgres")]
    database: String,
    /// The role.
    #[arg(short = 'U', value_name = "ROLE", default_value = "postgres")]
    user: String,
    /// Print CSV.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let program = Program::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()))
        .with_target(false)
        .init();
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| SqlError::internal(format_args!("cannot start threads: {e}")))
        .and_then(|runtime| {
            runtime.block_on(async {
                match program.command {
                    Command::Serve(arguments) => serve(arguments).await,
                    Command::Sql(arguments) => sql(arguments).await,
                }
            })
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stegodon: {}", error.message);
            for (what, text) in [("DETAIL", &error.detail), ("HINT", &error.hint)] {
                if let Some(text) = text {
                    eprintln!("{what}:  {text}");
                }
            }
            ExitCode::FAILURE
        }
    }
}

async fn serve(arguments: Serve) -> SqlResult<()> {
    let mut settings = Vec::with_capacity(arguments.settings.len());
    for assignment in &arguments.settings {
        let (name, value) = assignment.split_once('=').ok_or_else(|| {
            SqlError::new(stegodon::SqlState::SyntaxError, format!("-c {assignment}: a setting is name=value"))
        })?;
        settings.push((name.trim().to_owned(), value.to_owned()));
    }
    let cluster = Cluster::open(&arguments.directory, &settings)?;
    let endpoints = Endpoints::open(&cluster).await?;
    let host = endpoints.socket_directory().unwrap_or_else(|| "localhost".to_owned());
    let user = cluster.superuser().unwrap_or_else(|| "postgres".to_owned());
    let database = cluster.first_database().unwrap_or_else(|| "postgres".to_owned());
    println!("stegodon: ready to accept connections; connect with");
    println!("  psql -h {host} -p {} -U {user} {database}", endpoints.port());
    stegodon::serve(cluster, endpoints, stopped()).await;
    Ok(())
}

/// Completes when the process is asked to stop.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

async fn sql(arguments: Sql) -> SqlResult<()> {
    let database = Database::open(&arguments.directory, &arguments.database, &arguments.user)?;
    let style = match (arguments.csv, arguments.json) {
        (true, _) => Style::Csv,
        (_, true) => Style::Json,
        _ => Style::Aligned,
    };
    let mut rows = database.query(&arguments.command).await?;
    if rows.columns().is_empty() && !rows.tag().starts_with("SELECT") {
        println!("{}", rows.tag());
        return Ok(());
    }
    let mut table = TextTable::new(rows.columns());
    while let Some(texts) = rows.next_text().await? {
        for row in texts {
            table.push(row);
        }
    }
    print!("{}", table.print(style));
    Ok(())
}

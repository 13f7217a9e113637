package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres is a server in a temporary folder, which is reached by a socket in it alone.
type postgres struct {
	t      *testing.T
	folder string
	// as is the user that runs it: PostgreSQL refuses to be run by root.
	as *syscall.Credential
}

// startPostgres starts a server, which ends with the test.
func startPostgres(t *testing.T) *postgres {
	t.Helper()
	folder, err := os.MkdirTemp("", "pg") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	p := &postgres{t: t, folder: folder}
	if os.Getuid() == 0 {
		p.as = unprivileged(t)
		if err := os.Chown(folder, int(p.as.Uid), int(p.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	p.run("initdb", "--no-sync", "--auth=trust", "--username=test", "--encoding=UTF8", "--locale=C", p.data())
	t.Cleanup(func() { p.run("pg_ctl", "--pgdata="+p.data(), "--mode=immediate", "--wait", "stop") })
	p.start()
	return p
}

func (p *postgres) data() string { return filepath.Join(p.folder, "data") }

func (p *postgres) start() {
	p.t.Helper()
	p.run("pg_ctl", "--pgdata="+p.data(), "--log="+filepath.Join(p.folder, "log"), "--wait", "--timeout=120",
		"--options=-c listen_addresses='' -c unix_socket_directories="+p.folder, "start")
}

// restart ends the server as a crash does, and starts it.
func (p *postgres) restart() {
	p.t.Helper()
	p.run("pg_ctl", "--pgdata="+p.data(), "--mode=immediate", "--wait", "stop")
	p.start()
}

// unprivileged returns a user without rights of its own.
func unprivileged(t *testing.T) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// run runs a program of PostgreSQL to its end.
func (p *postgres) run(program string, args ...string) {
	p.t.Helper()
	cmd := exec.Command(postgresProgram(p.t, program), args...)
	cmd.Dir = p.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	if out, err := cmd.CombinedOutput(); err != nil {
		log, _ := os.ReadFile(filepath.Join(p.folder, "log"))
		p.t.Fatalf("%s: %v\n%s\n%s", program, err, out, log)
	}
}

// postgresProgram finds a program of PostgreSQL, which Debian keeps out of the search path.
func postgresProgram(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s is not installed; the tests need PostgreSQL 13 or newer (Debian: apt-get install postgresql)", name)
	}
	return found[len(found)-1]
}

// open connects to the server and makes the tables.
func (p *postgres) open() *service {
	p.t.Helper()
	const patience = 60 * time.Second
	ctx, stop := context.WithTimeout(p.t.Context(), patience)
	defer stop()
	pool, err := pgxpool.New(ctx, fmt.Sprintf("host=%s user=test dbname=postgres pool_max_conns=20", p.folder))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(pool.Close)
	s, err := open(ctx, pool)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// restored gives the database another history, as after a dump was restored.
func (p *postgres) restored(s *service) {
	p.t.Helper()
	if _, err := s.pool.Exec(p.t.Context(), "update history set id = gen_random_uuid()"); err != nil {
		p.t.Fatal(err)
	}
}

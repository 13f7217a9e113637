package operate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/reload"
	"github.com/sluicegw/sluice/cmd/sluice/sdl"
	"github.com/sluicegw/sluice/internal/redistest"
)

// checkServe runs serve --check and returns its lines, the notes and the exit code.
func checkServe(t *testing.T, args ...string) (lines []string, notes string, code int) {
	t.Helper()
	if !slices.Contains(args, "--listen") && !slices.Contains(args, "--config") {
		args = append(args, "--listen", "127.0.0.1:0") // something else may use the default port of this machine
	}
	out, notes, code := commandtest.Run(t, newRoot, append([]string{"serve", "--check"}, args...)...)
	return strings.Split(strings.TrimSpace(out), "\n"), notes, code
}

// snapshot returns the paths and the contents of all files of a folder.
func snapshot(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			out[path] = "folder"
			return err
		}
		text, err := os.ReadFile(path)
		out[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestServeCheck_FindsNothingWhereNoStoreIs(t *testing.T) {
	folder := t.TempDir()
	lines, notes, code := checkServe(t, "--data", filepath.Join(folder, "a", "b"))
	if code != 0 || len(lines) != 1 || !strings.Contains(lines[0], "nothing is wrong") {
		t.Errorf("exit %d: %q", code, lines)
	}
	if !strings.Contains(notes, "there is no store in "+filepath.Join(folder, "a", "b")+" yet; a start makes it") {
		t.Errorf("notes: %s", notes)
	}
	if got := snapshot(t, folder); len(got) != 1 {
		t.Errorf("it made files: %v", got)
	}
}

// expiredCertificate writes a certificate that has expired, and its key.
func expiredCertificate(t *testing.T, folder string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway"},
		NotBefore: from, NotAfter: from.AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	cert = commandtest.WriteFile(t, folder, "cert.pem", block("CERTIFICATE", der))
	return cert, commandtest.WriteFile(t, folder, "key.pem", block("EC PRIVATE KEY", keyDER))
}

func TestServeCheck_SaysAllThatIsWrongAtOnce(t *testing.T) {
	folder := t.TempDir()
	kinds := filepath.Join(folder, "kinds")
	if err := os.Mkdir(kinds, 0o700); err != nil {
		t.Fatal(err)
	}
	commandtest.WriteFile(t, kinds, "a.graphqls", "type A @resource { x: Nothing }\n")
	cert, key := expiredCertificate(t, folder)
	tokens := commandtest.WriteFile(t, folder, "tokens", "no token\nnor this\n")
	issuers := commandtest.WriteFile(t, folder, "oidc.yaml", "issuers: []\n")
	auditLog := commandtest.WriteFile(t, folder, "audit.log", "hello\n")
	keys := commandtest.WriteFile(t, folder, "keys", "k1:short\n")
	data := filepath.Join(folder, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	commandtest.WriteFile(t, data, "sluice.db", "this is no store")
	file := commandtest.WriteFile(t, folder, "sluice.yaml", strings.Join([]string{
		"unknown-key: 1", "limit-depth: many", "retain-age: 5", "log-level: loud", "redis-prefix: x",
		"tls-cert: " + cert, "tls-key: " + key, "tokens: " + tokens, "oidc: " + issuers, "audit: " + auditLog,
		"encryption-keys-file: " + keys, "catalogue: " + kinds, "data: " + data, "allow-anonymous: true",
		"admin-socket: " + filepath.Join(folder, strings.Repeat("s", 120)), "listen: 192.0.2.1:80",
		"trusted-documents: [" + filepath.Join(folder, "absent.json") + "]",
	}, "\n"))
	t.Setenv("SLUICE_LIMIT_ROWS", "few")
	before := snapshot(t, folder)
	lines, _, code := checkServe(t, "--config", file)
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{
		`SLUICE_LIMIT_ROWS: "few" is not`, `unknown key "unknown-key"`, `limit-depth: "many" is not`, `retain-age: "5" is not`,
		`log-level: "loud"`, "redis-prefix: has no effect without redis", "allow-anonymous: it contradicts",
		"listen: 192.0.2.1 is no address of this machine", "tls-cert: the certificate has expired at 2021-01-01T00:00:00Z",
		"tokens: " + tokens + ": line 1: ", "tokens: " + tokens + ": line 2: ", "oidc: " + issuers + ": there is no issuer",
		"audit: " + auditLog + ": its last line is no line", "encryption-keys-file: ", "catalogue: " + kinds, "data: ",
		"admin-socket: ", "trusted-documents: " + filepath.Join(folder, "absent.json"),
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("no line says %q", want)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(lines, "\n"))
	}
	after := snapshot(t, folder)
	for path := range after {
		if after[path] != before[path] {
			t.Errorf("%s was changed", path)
		}
	}
}

func TestServeCheck_AFileThatCannotBeReadEndsIt(t *testing.T) {
	lines, notes, code := checkServe(t, "--config", filepath.Join(t.TempDir(), "absent.yaml"))
	if code != 1 || len(lines) != 1 || !strings.Contains(lines[0], "absent.yaml") || !strings.Contains(notes, "nothing else was checked") {
		t.Errorf("exit %d: %q\n%s", code, lines, notes)
	}
}

func TestServeCheck_AStoreInUseIsANote(t *testing.T) {
	data := t.TempDir()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(data, "sluice.db")})
	if err != nil {
		t.Fatal(err)
	}
	lines, notes, code := checkServe(t, "--data", data)
	if code != 0 || len(lines) != 1 || !strings.Contains(notes, "is in use by a running gateway") {
		t.Errorf("exit %d: %q\n%s", code, lines, notes)
	}
	lines, notes, code = checkServe(t, "--data", data, "--slow-log", "-1s")
	if code != 1 || !strings.HasPrefix(lines[0], "slow-log: ") || !strings.Contains(notes, "is in use by a running gateway") {
		t.Errorf("with a wrong setting: exit %d: %q\n%s", code, lines, notes)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, notes, code := checkServe(t, "--data", data); code != 0 || notes != "" {
		t.Errorf("when it is closed: exit %d: %q\n%s", code, lines, notes)
	}
}

func TestServeCheck_SaysWhyTheStoreRefusesTheCatalogue(t *testing.T) {
	data := t.TempDir()
	kinds := filepath.Join(t.TempDir(), "kinds")
	if err := os.Mkdir(kinds, 0o700); err != nil {
		t.Fatal(err)
	}
	commandtest.WriteFile(t, kinds, "shelf.graphqls", shelves)
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(data, "sluice.db")})
	if err != nil {
		t.Fatal(err)
	}
	served, err := sdl.Read(kinds)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(sdl.Accept(t.Context(), catalogue.Gate{Store: store}, served.Candidate()), store.Close())
	if err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, data)
	if lines, notes, code := checkServe(t, "--data", data, "--catalogue", kinds); code != 0 || notes != "" {
		t.Errorf("exit %d: %q %s", code, lines, notes)
	}
	commandtest.WriteFile(t, kinds, "shelf.graphqls", strings.ReplaceAll(shelves, "width: Int", "width: Boolean"))
	lines, _, code := checkServe(t, "--data", data, "--catalogue", kinds, "--audit", filepath.Join(data, "absent", "audit.log"))
	if code != 1 || len(lines) != 2 || !strings.HasPrefix(lines[1], "audit: ") ||
		!strings.Contains(lines[0], "shelf.graphqls:6: ") || !strings.Contains(lines[0], "use --allow-breaking") {
		t.Errorf("exit %d: %q", code, lines)
	}
	if after := snapshot(t, data); !maps.Equal(before, after) {
		t.Error("the store was changed")
	}
}

func TestServeCheck_AnEmptyRedisIsANote(t *testing.T) {
	server := redistest.Start(t)
	args := []string{"--redis", server.URL()}
	lines, notes, code := checkServe(t, args...)
	if code != 0 || !strings.Contains(notes, "there is no store under the prefix") {
		t.Errorf("exit %d: %q %s", code, lines, notes)
	}
	if lines, _, code := checkServe(t, append(args, "--read-only")...); code != 1 || len(lines) != 1 {
		t.Errorf("a read-only gateway makes none: exit %d: %q", code, lines)
	}
}

func TestServeCheck_RedisThatDoesNotAnswerIsAProblem(t *testing.T) {
	lines, _, code := checkServe(t, "--redis", "redis://127.0.0.1:1")
	if code != 1 || len(lines) != 1 || !strings.HasPrefix(lines[0], "redis: ") {
		t.Errorf("exit %d: %q", code, lines)
	}
}

func TestServeCheck_IsNoSetting(t *testing.T) {
	file := commandtest.WriteFile(t, t.TempDir(), "sluice.yaml", "check: true\n")
	out, errOut, code := commandtest.Run(t, newRoot, "serve", "--config", file)
	if code != 2 || !strings.Contains(errOut, `unknown key "check"`) {
		t.Errorf("exit %d %s %s", code, out, errOut)
	}
}

// busyAddress is an address on which the test listens.
func busyAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestServeCheck_AnAddressInUseIsAProblemUnlessAGatewayMayHaveIt(t *testing.T) {
	data := t.TempDir()
	busy := busyAddress(t)
	lines, _, code := checkServe(t, "--data", data, "--listen", busy)
	if want := "listen: " + busy + " is in use by another process; choose another address"; code != 1 || !slices.Equal(lines, []string{want}) {
		t.Errorf("exit %d: %q, want %s", code, lines, want)
	}
	lines, _, code = checkServe(t, "--data", data, "--listen", "127.0.0.1:20999", "--debug-listen", "127.0.0.1:20999")
	if want := "debug-listen: 127.0.0.1:20999 is the address of listen, too; choose another one"; code != 1 || !slices.Contains(lines, want) {
		t.Errorf("exit %d: %q, want %s", code, lines, want)
	}
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(data, "sluice.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	lines, notes, code := checkServe(t, "--data", data, "--listen", busy)
	if code != 0 || !strings.Contains(notes, "listen: "+busy+" is in use; a start needs it to be free") {
		t.Errorf("beside a gateway: exit %d: %q\n%s", code, lines, notes)
	}
}

func TestServeCheck_ReadsTheVariablesOfTraces(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "zipkin")
	t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "much")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "no attribute")
	lines, _, code := checkServe(t, "--data", t.TempDir())
	if code != 1 || len(lines) < 3 {
		t.Errorf("exit %d: %q", code, lines)
	}
	for _, want := range []string{"OTEL_TRACES_EXPORTER: \"zipkin\"; accepted", "OTEL_TRACES_SAMPLER_ARG: \"much\"; a number", "OTEL_RESOURCE_ATTRIBUTES: "} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("no line says %q: %q", want, lines)
		}
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	if lines, _, code := checkServe(t, "--data", t.TempDir()); code != 0 {
		t.Errorf("without traces: exit %d: %q", code, lines)
	}
}

func TestServeCheck_FindsWhatTheLibraryOfTracesPassesOver(t *testing.T) {
	malformed := map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":           "://s3cret",
		"OTEL_EXPORTER_OTLP_HEADERS":            "a=b,authorization=Bearer s3cret%zz",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS":     "s3cret",
		"OTEL_EXPORTER_OTLP_TIMEOUT":            "10s",
		"OTEL_EXPORTER_OTLP_COMPRESSION":        "zstd",
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        "no-such-file",
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "no-such-file",
		"OTEL_BSP_SCHEDULE_DELAY":               "0",
		"OTEL_BSP_MAX_QUEUE_SIZE":               "-5",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE":        "99999999999999",
	}
	for name, value := range malformed {
		t.Setenv(name, value)
	}
	lines, notes, code := checkServe(t, "--data", t.TempDir())
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	for name := range malformed {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, name+": ") }) {
			t.Errorf("no line is about %s: %q", name, lines)
		}
	}
	if said := strings.Join(lines, "") + notes; strings.Contains(said, "s3cret") {
		t.Errorf("a secret is shown: %s", said)
	}
	_, out, code := commandtest.Run(t, newRoot, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir())
	if code != 2 || strings.Contains(out, "s3cret") || !strings.Contains(out, "OTEL_BSP_MAX_QUEUE_SIZE: ") {
		t.Errorf("a start: exit %d: %s", code, out)
	}
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if lines, _, code := checkServe(t, "--data", t.TempDir()); code != 0 {
		t.Errorf("without traces: exit %d: %q", code, lines)
	}
}

func TestServeCheck_SaysWhichFileIsAFolder(t *testing.T) {
	folder := t.TempDir()
	settings := []string{
		"tokens", "oidc", "audit", "encryption-keys-file", "trusted-documents", "redis-password-file", "tls-cert",
		"field-numbers",
	}
	args := []string{"--tls-key", folder, "--service-listen", "127.0.0.1:0", "--redis", "redis://127.0.0.1:1"}
	for _, setting := range settings {
		args = append(args, "--"+setting, folder)
	}
	absent := filepath.Join(folder, "none")
	lines, _, code := checkServe(t, append(args, "--bootstrap", absent)...)
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, setting := range settings {
		if !slices.ContainsFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, setting+": ") && strings.Contains(line, folder)
		}) {
			t.Errorf("no line is about %s", setting)
		}
	}
	if !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "bootstrap: ") && strings.Contains(line, absent)
	}) {
		t.Error("no line is about bootstrap, though the store cannot be opened")
	}
	if t.Failed() {
		t.Log(strings.Join(lines, "\n"))
	}
}

func TestServeCheck_SaysThatNoClientCanHaveAValidCertificate(t *testing.T) {
	cert, key := expiredCertificate(t, t.TempDir())
	lines, _, code := checkServe(t, "--data", t.TempDir(), "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert)
	want := "tls-client-ca: " + cert + ": all its certificates have expired, the last one at 2021-01-01T00:00:00Z"
	if code != 1 || !slices.Contains(lines, want) {
		t.Errorf("exit %d: %q", code, lines)
	}
}

func TestServeCheck_SaysWhichCertificatesOfRedisAndServicesHaveExpired(t *testing.T) {
	folder := t.TempDir()
	cert, key := expiredCertificate(t, folder)
	file := commandtest.WriteFile(t, folder, "sluice.yaml", strings.Join([]string{
		"redis: rediss://127.0.0.1:1", "redis-cert: " + cert, "redis-key: " + key, "redis-ca: " + cert, "listen: 127.0.0.1:0",
		"services: {crm: {address: \"https://127.0.0.1:1\", cert: " + cert + ", key: " + key + "}}",
	}, "\n"))
	lines, _, code := checkServe(t, "--config", file)
	for _, want := range []string{
		"redis-cert: " + cert + ": the certificate has expired at 2021-01-01T00:00:00Z",
		"redis-ca: all its certificates have expired, the last one at 2021-01-01T00:00:00Z",
		"services: crm: " + cert + ": the certificate has expired at 2021-01-01T00:00:00Z",
		"redis: ",
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("no line says %q: exit %d %q", want, code, lines)
		}
	}
	_, other := expiredCertificate(t, t.TempDir())
	lines, _, code = checkServe(t, "--redis", "rediss://127.0.0.1:1", "--redis-cert", cert, "--redis-key", other, "--redis-ca", key)
	for _, want := range []string{
		"redis-cert: " + cert + " and " + other + ": tls: private key does not match",
		"redis-ca: " + key + ": there is no certificate (PEM) in it",
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("no line says %q: exit %d %q", want, code, lines)
		}
	}
}

func TestServeCheck_RedisThatRefusesThePasswordIsAProblem(t *testing.T) {
	server := redistest.Start(t, redistest.User("gateway", "right", "~*", "+@all"))
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("gateway", "wrong-hunter2")
	lines, _, code := checkServe(t, "--redis", at.String())
	if code != 1 || len(lines) != 1 || !strings.HasPrefix(lines[0], "redis: ") || !strings.Contains(lines[0], "WRONGPASS") || strings.Contains(lines[0], "hunter2") {
		t.Errorf("exit %d: %q", code, lines)
	}
}

func TestServeCheck_DoesNotWaitForNamedPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	onRedis := []string{"--redis", "redis://127.0.0.1:1"}
	for setting, more := range map[string][]string{
		"tokens": nil, "oidc": nil, "encryption-keys-file": nil, "trusted-documents": nil, "bootstrap": nil, "audit": nil,
		"tls-client-ca": nil, "field-numbers": {"--service-listen", "127.0.0.1:0"}, "config": {"--listen", "127.0.0.1:0"},
		"redis-password-file": onRedis, "redis-ca": onRedis,
	} {
		lines, _, code := checkServe(t, append(more, "--"+setting, pipe)...)
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, pipe) }) || code != 1 {
			t.Errorf("%s: exit %d: %q", setting, code, lines)
		}
	}
	issuers := commandtest.WriteFile(t, t.TempDir(), "oidc.yaml",
		"issuers: [{name: corp, url: \"https://127.0.0.1:1\", audience: sluice, ca: "+pipe+"}]\n")
	lines, _, code := checkServe(t, "--oidc", issuers)
	if code != 1 || !strings.Contains(lines[0], pipe+" is no regular file") {
		t.Errorf("the CA of an issuer: exit %d: %q", code, lines)
	}
	data := t.TempDir()
	if err := os.Rename(pipe, filepath.Join(data, "sluice.db")); err != nil {
		t.Fatal(err)
	}
	lines, _, code = checkServe(t, "--data", data)
	if code != 1 || len(lines) != 1 || !strings.HasSuffix(lines[0], "sluice.db: it is no regular file") {
		t.Errorf("exit %d: %q", code, lines)
	}
}

func TestServeCheck_AFileInUseIsAProblemUnlessAGatewayMayHaveIt(t *testing.T) {
	folder := t.TempDir()
	file := commandtest.WriteFile(t, folder, "audit.log", "")
	lock := flock.New(file)
	if ok, err := lock.TryLock(); err != nil || !ok {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	socket, err := reload.Listen(filepath.Join(folder, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	data := filepath.Join(folder, "data")
	args := []string{"--data", data, "--audit", file, "--admin-socket", filepath.Join(folder, "s")}
	lines, _, code := checkServe(t, args...)
	want := []string{
		"admin-socket: " + filepath.Join(folder, "s") + ": it is in use by another process",
		"audit: " + file + ": another process writes it",
	}
	if code != 1 || !slices.Equal(lines, want) {
		t.Errorf("exit %d: %q", code, lines)
	}
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(data, "sluice.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	lines, notes, code := checkServe(t, args...)
	if code != 0 || !strings.Contains(notes, want[0]+"; a start needs it to be free") ||
		!strings.Contains(notes, want[1]+"; a start needs it to be free") {
		t.Errorf("beside a gateway: exit %d: %q\n%s", code, lines, notes)
	}
}

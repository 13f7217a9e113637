package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"go.etcd.io/bbolt"

	"github.com/sluicegw/sluice/internal/redistest"
)

// vaults is a catalogue with write-only fields of every form.
const vaults = `
type Vault @resource(plural: "vaults", group: "", version: "v1", scope: NAMESPACED) {
  spec: VaultSpec!
  status: VaultStatus
}

type VaultSpec
  @rule(cel: "!has(self.password) || !has(self.user) || self.password != self.user", message: "the password is not the user")
  @rule(cel: "!has(self.password) || !has(oldSelf.user) || self.password != oldSelf.user", message: "the password was no user") {
  user: String @constraint(maxLength: 100) @filterable @sortable
  password: String @writeOnly @constraint(minLength: 8, maxLength: 60, pattern: "^[a-z0-9-]*$")
  keys: [String!] @writeOnly @list(type: SET) @constraint(maxItems: 3, maxLength: 60)
  entries: [MapEntry!] @writeOnly @map @constraint(maxProperties: 3, maxLength: 60, keyMaxLength: 60, keyPattern: "^[a-z0-9-]+$")
  colour: VaultColour @writeOnly
  certificate: Certificate @writeOnly
  login: Login
}

enum VaultColour { RED BLUE }

type Certificate {
  chain: String! @constraint(maxLength: 100)
  key: String! @constraint(maxLength: 60)
}

type Login {
  name: String @constraint(maxLength: 100)
  token: String @writeOnly @constraint(maxLength: 60)
}

type VaultStatus { open: Boolean }
`

// witness searches all that a gateway says for a secret.
type witness struct {
	*gateway
	secret string
	// redis is where the gateway's store is, nil for the one of all tests.
	redis *redistest.Server
}

// appearsIn reports whether a text has the secret, in plain form or in base64.
func (w *witness) appearsIn(text string) bool {
	return strings.Contains(text, w.secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(w.secret)))
}

// ask sends an operation, and returns its answer as it is.
func (w *witness) ask(query string, variables map[string]any) string {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := http.Post(w.address+"/graphql", "application/json", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	w.hears("the answer to "+query, string(raw))
	return string(raw)
}

// hears refuses a text with the secret, or with the number that stands for one.
func (w *witness) hears(what, text string) {
	w.t.Helper()
	if w.appearsIn(text) || strings.Contains(text, "47114711") {
		w.t.Errorf("%s has the value of a write-only field:\n%s", what, text)
	}
}

// done asks for something that is done.
func (w *witness) done(query string, variables map[string]any) string {
	w.t.Helper()
	out := w.ask(query, variables)
	if strings.Contains(out, `"errors"`) {
		w.t.Fatalf("%s: %s", query, out)
	}
	return out
}

// fails asks for something that is refused with a text.
func (w *witness) fails(query string, variables map[string]any, says string) {
	w.t.Helper()
	if out := w.ask(query, variables); !strings.Contains(out, says) {
		w.t.Errorf("%s: %s\nwant %q", query, out, says)
	}
}

// run is a command line whose output is searched too.
func (w *witness) run(stdin string, args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	stdout, stderr, code = w.cli(stdin, args...)
	w.hears(fmt.Sprint("sluice ", args), stdout+stderr)
	return stdout, stderr, code
}

// events follows a stream of server-sent events until ctx ends.
func (w *witness) events(ctx context.Context, query string) <-chan string {
	w.t.Helper()
	body, _ := json.Marshal(map[string]any{"query": query})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.address+"/graphql", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		defer func() { _ = res.Body.Close() }()
		for s := bufio.NewScanner(res.Body); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

const vaultFields = ` id kind subKind apiVersion metadata { name namespace uid revision generation labels { key value } annotations { key value } description createdAt updatedAt }
	spec { user login { name } } specJSON status { open } statusJSON manifest yaml: manifest(format: YAML) json: manifest(format: JSON) `

func TestAWriteOnlyValueIsNeverShown(t *testing.T) {
	w := neverShown(t, vaults)
	if os.Getenv(storeVariable) == "" {
		w.lies(w.data)
	}
}

func TestASensitiveValueLiesApart(t *testing.T) {
	w := neverShown(t, strings.Replace(vaults, "scope: NAMESPACED", "scope: NAMESPACED, sensitive: true", 1))
	apart, beside := 0, 0
	w.everything(func(key string, has bool) {
		switch {
		case has && strings.Contains(key, "_sensitive.Vault"):
			apart++
		case has:
			t.Errorf("the entry %q has the value", key)
		default:
			beside++
		}
	})
	if apart == 0 || beside < 5 {
		t.Errorf("%d entries have the value where it belongs, %d others were looked at", apart, beside)
	}
}

func TestASensitiveValueIsEncryptedInTheStore(t *testing.T) {
	w := neverShown(t, strings.Replace(vaults, "scope: NAMESPACED", "scope: NAMESPACED, sensitive: true", 1), "--encryption-keys-file", keysFile(t, "a"))
	w.everything(func(key string, has bool) {
		if has {
			t.Errorf("the entry %q has the value", key)
		}
	})
}

// everything calls note for every entry of the store, which nobody else has open:
// with its key, and whether it has the secret.
func (w *witness) everything(note func(key string, has bool)) {
	w.t.Helper()
	if os.Getenv(storeVariable) != "" || w.redis != nil {
		w.everythingOnRedis(note)
		return
	}
	db, err := bbolt.Open(filepath.Join(w.data, "sluice.db"), 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(bucket []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				key := string(bucket) + "/" + string(k)
				note(key, w.appearsIn(key+string(v)))
				return nil
			})
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// everythingOnRedis does it for all keys of the gateway's prefix.
func (w *witness) everythingOnRedis(note func(key string, has bool)) {
	w.t.Helper()
	at := w.redis
	if at == nil {
		at = server.Server(w.t)
	}
	options, err := goredis.ParseURL(at.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	client := goredis.NewClient(options)
	defer func() { _ = client.Close() }()
	keys := client.Scan(w.t.Context(), 0, prefix(w.data)+"*", 1000).Iterator()
	for keys.Next(w.t.Context()) {
		key := keys.Val()
		read := map[string][]any{
			"string": {"GET", key}, "hash": {"HGETALL", key}, "zset": {"ZRANGE", key, 0, -1}, "stream": {"XRANGE", key, "-", "+"},
		}[client.Type(w.t.Context(), key).Val()]
		value, err := client.Do(w.t.Context(), read...).Result()
		if err != nil {
			w.t.Fatalf("%s: %v", key, err)
		}
		note(key, w.appearsIn(key+fmt.Sprint(value)))
	}
	if err := keys.Err(); err != nil {
		w.t.Fatal(err)
	}
}

// neverShown uses write-only fields in every way and searches for a secret all
// that is said, but for the store, which it leaves as it is.
func neverShown(t *testing.T, catalogue string, args ...string) *witness {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "vault.graphqls"), catalogue)
	w := &witness{gateway: start(t, "", append(args, "--catalogue", dir, "--log-level", "debug", "--log-format", "json")...), secret: "s" + strings.ToLower(rand.Text())}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s := w.dial()
	defer s.close()
	s.subscribe("1", `subscription { vaultChanges(snapshot: true) { type cursor revision vault {`+vaultFields+`} } }`, nil)
	s.subscribe("2", `subscription { resourceChanges { type resource { id kind metadata { name } manifest } } }`, nil)
	sse := w.events(ctx, `subscription { vaultChanges(filter: {spec: {user: {ne: "nobody"}}}) { type vault {`+vaultFields+`} } }`)
	spec := map[string]any{
		"user": "ada", "password": w.secret, "keys": []string{w.secret, "other"}, "entries": []map[string]any{{"key": w.secret, "value": w.secret}},
		"colour": "RED", "certificate": map[string]any{"chain": w.secret, "key": w.secret}, "login": map[string]any{"name": "l", "token": w.secret},
	}
	input := func(more ...any) map[string]any {
		in := map[string]any{"name": "v", "spec": spec}
		for i := 0; i < len(more); i += 2 {
			in[more[i].(string)] = more[i+1]
		}
		return map[string]any{"in": in}
	}
	with := func(name string, value any) map[string]any {
		out := map[string]any{}
		for k, v := range spec {
			out[k] = v
		}
		out[name] = value
		return out
	}
	revision := func() string {
		var a struct {
			Data struct {
				Vault struct{ Metadata struct{ Revision string } }
			}
		}
		if err := json.Unmarshal([]byte(w.done(`{ vault(name: "v") { metadata { revision } } }`, nil)), &a); err != nil {
			t.Fatal(err)
		}
		return a.Data.Vault.Metadata.Revision
	}
	apply := `mutation($m: String!, $dry: Boolean = false) { applyManifest(input: {manifest: $m, dryRun: $dry}) { outcome warnings { message } resource { kind manifest } preview { kind manifest } } }`
	// kept asks the rules, which read what nobody is shown, whether the stored
	// password is there. Nothing is written.
	kept := func(want bool) {
		t.Helper()
		out := w.ask(`mutation($m: String!) { applyManifest(input: {manifest: $m, dryRun: true}) { outcome } }`, map[string]any{"m": "apiVersion: v1\nkind: Vault\nmetadata: {name: v}\nspec: {user: " + w.secret + "}"})
		if same := strings.Contains(out, "the password is not the user"); same != want {
			t.Fatalf("the password is kept: %v, want %v: %s", same, want, out)
		}
	}
	payload := `{ vault {` + vaultFields + `} }`
	create := `mutation($in: CreateVaultInput!) { createVault(input: $in) ` + payload + ` }`
	update := `mutation($in: UpdateVaultInput!) { updateVault(input: $in) ` + payload + ` }`
	upsert := `mutation($in: UpsertVaultInput!) { upsertVault(input: $in) ` + payload + ` }`
	patch := `mutation($in: PatchVaultInput!) { patchVault(input: $in) ` + payload + ` }`
	w.done(create, input())
	kept(true)

	t.Run("answers", func(t *testing.T) {
		w.t = t
		for _, q := range []string{
			`{ vault(name: "v") {` + vaultFields + `} }`,
			`{ vaults(filter: {spec: {user: {eq: "ada"}}}, orderBy: [{field: SPEC_USER}]) { totalCount edges { cursor node {` + vaultFields + `} } nodes { id } pageInfo { endCursor } changeCursor } }`,
			`{ resource(kind: "Vault", name: "v") { id kind manifest } resources(kind: "Vault") { nodes { id specJSON statusJSON manifest(format: JSON) } } }`,
			`{ kinds { name fields { path name type description default writeOnly limits { pattern } } filterableFields { path } } }`,
			`{ __schema { types { name fields { name } inputFields { name defaultValue description } } } }`,
		} {
			w.done(q, nil)
		}
		var a struct {
			Data struct{ Vault struct{ ID string } }
		}
		if err := json.Unmarshal([]byte(w.done(`{ vault(name: "v") { id } }`, nil)), &a); err != nil {
			t.Fatal(err)
		}
		w.done(`query($id: ID!) { node(id: $id) { id ... on Vault {`+vaultFields+`} } nodes(ids: [$id]) { ... on Resource { manifest } } }`, map[string]any{"id": a.Data.Vault.ID})
		out := w.done(`{ spec: __type(name: "VaultSpec") { fields { name } } login: __type(name: "Login") { fields { name } } certificate: __type(name: "Certificate") { name } input: __type(name: "VaultSpecInput") { inputFields { name } } filter: __type(name: "VaultSpecFilter") { inputFields { name } } }`, nil)
		want := `{"data":{"spec":{"fields":[{"name":"user"},{"name":"login"}]},"login":{"fields":[{"name":"name"}]},"certificate":null,"input":{"inputFields":[{"name":"user"},{"name":"password"},{"name":"keys"},{"name":"entries"},{"name":"colour"},{"name":"certificate"},{"name":"login"}]},"filter":{"inputFields":[{"name":"user"}]}}}`
		if strings.TrimSpace(out) != want {
			t.Errorf("got  %s\nwant %s", out, want)
		}
		w.fails(`{ vault(name: "v") { spec { password } } }`, nil, `Cannot query field \"password\" on type \"VaultSpec\"`)
	})
	t.Run("payloads of all verbs, which keep what they leave out", func(t *testing.T) {
		w.t = t
		login := map[string]any{"name": "m"}
		w.done(update, input("expectedRevision", revision(), "spec", map[string]any{"user": "ada", "login": login}))
		kept(true)
		w.done(upsert, input("spec", map[string]any{"user": "ada", "login": login}))
		kept(true)
		w.done(patch, input("expectedRevision", revision(), "spec", map[string]any{"login": map[string]any{"name": "n"}}))
		kept(true)
		w.done(`mutation($in: UpdateVaultStatusInput!) { updateVaultStatus(input: $in) `+payload+` }`, map[string]any{"in": map[string]any{"name": "v", "expectedRevision": revision(), "status": map[string]any{"open": true}}})
		for _, dry := range []bool{true, false} {
			w.done(apply, map[string]any{"m": "apiVersion: v1\nkind: Vault\nmetadata: {name: v}\nspec: {user: ada, login: {name: o, token: " + w.secret + "}}", "dry": dry})
			kept(true)
		}
		w.done(apply, map[string]any{"m": "apiVersion: v1\nkind: Vault\nmetadata: {name: w}\nspec: {password: " + w.secret + "}"})
		w.done(`mutation { deleteVault(input: {name: "w"}) { state vault {`+vaultFields+`} } }`, nil)
	})
	t.Run("the same again is UNCHANGED, another value is not", func(t *testing.T) {
		w.t = t
		manifest := "apiVersion: v1\nkind: Vault\nmetadata: {name: same}\nspec: {password: " + w.secret + ", login: {token: " + w.secret + "}}"
		for _, c := range []struct{ manifest, outcome string }{
			{manifest, "CREATED"}, {manifest, "UNCHANGED"}, {"apiVersion: v1\nkind: Vault\nmetadata: {name: same}\nspec: {login: {}}", "UNCHANGED"},
			{strings.Replace(manifest, "password: ", "password: x", 1), "UPDATED"}, {manifest, "UPDATED"},
		} {
			if out := w.done(apply, map[string]any{"m": c.manifest}); !strings.Contains(out, `"outcome":"`+c.outcome+`"`) {
				t.Errorf("%s: %s", c.outcome, out)
			}
		}
	})
	t.Run("errors", func(t *testing.T) {
		w.t = t
		w.fails(create, input(), "ALREADY_EXISTS")
		w.fails(update, input("expectedRevision", "1-1"), "CONFLICT")
		for _, c := range []struct {
			field string
			value any
			says  string
		}{
			{"password", w.secret + "!", "must match ^[a-z0-9-]*$"},
			{"password", w.secret + w.secret + w.secret, "must have at most 60 characters"},
			{"password", "s" + w.secret[:3], "must have at least 8 characters"},
			{"user", w.secret, "the password is not the user"},
			{"keys", []string{w.secret, w.secret}, "repeats element 0"},
			{"keys", []string{"a", "b", "c", w.secret}, "must have at most 3 elements"},
			{"entries", []map[string]any{{"key": w.secret + "!", "value": w.secret}}, "the key must match"},
			{"entries", []map[string]any{{"key": "k", "value": w.secret + w.secret + w.secret}}, "must have at most 60 characters"},
			{"certificate", map[string]any{"chain": strings.Repeat(w.secret, 9), "key": w.secret}, "must have at most 100 characters"},
			{"login", map[string]any{"token": w.secret + w.secret + w.secret}, "must have at most 60 characters"},
		} {
			w.fails(upsert, input("spec", with(c.field, c.value)), c.says)
		}
		for _, spec := range []string{
			"{certificate: {chain: c, key: k, " + w.secret + ": x}}", "{password: [" + w.secret + "]}", "{password: {" + w.secret + ": x}}", "{colour: " + w.secret + "}",
			"{keys: " + w.secret + "}", "{entries: " + w.secret + "}", "{entries: {k: [" + w.secret + "]}}", "{certificate: " + w.secret + "}", "{login: {token: {a: " + w.secret + "}}}",
		} {
			w.fails(apply, map[string]any{"m": "apiVersion: v1\nkind: Vault\nmetadata: {name: v}\nspec: " + spec}, "VALIDATION_FAILED")
		}
		for _, c := range []struct {
			field string
			value any
		}{
			{"password", []string{w.secret}}, {"password", map[string]any{"x": w.secret}}, {"colour", w.secret}, {"certificate", w.secret}, {"keys", []any{[]string{w.secret}}},
			{"entries", []any{w.secret}}, {"entries", []map[string]any{{"key": w.secret, "value": 1}}}, {"entries", []map[string]any{{"key": w.secret, "value": "1"}, {"key": w.secret, "value": "2"}}},
			{"entries", "x" + w.secret}, {"certificate", map[string]any{"chain": 1, "key": []string{w.secret}}}, {"login", map[string]any{"token": []string{w.secret, w.secret}}},
		} {
			w.fails(upsert, input("spec", with(c.field, c.value)), `"errors"`)
		}
		for _, literal := range []string{
			"password: 47114711", "password: " + w.secret, "password: {" + w.secret + ": 1}", `password: ["` + w.secret + `"]`, "colour: " + w.secret, `colour: "` + w.secret + `"`,
			`certificate: "` + w.secret + `"`, "certificate: {chain: " + w.secret + "}", "certificate: {" + w.secret + ": 1}", "keys: [" + w.secret + "]", "keys: " + w.secret,
			"entries: [" + w.secret + "]", "entries: [{key: " + w.secret + "}]", `entries: [{key: "k", value: ` + w.secret + `}]`, "login: {token: " + w.secret + "}",
		} {
			w.fails(`mutation { upsertVault(input: {name: "v", spec: {`+literal+`}}) { vault { id } } }`, nil, "GRAPHQL_VALIDATION_FAILED")
			w.fails(`mutation($s: VaultSpecInput! = {`+literal+`}) { upsertVault(input: {name: "v", spec: $s}) { vault { id } } }`, nil, "GRAPHQL_VALIDATION_FAILED")
		}
	})
	t.Run("the command line", func(t *testing.T) {
		w.t = t
		w.done(upsert, input())
		for _, format := range []string{"table", "yaml", "json", "name"} {
			if _, stderr, code := w.run("", "get", "vaults", "-o", format); code != 0 {
				t.Errorf("exit %d %s", code, stderr)
			}
		}
		for _, format := range []string{"yaml", "json"} {
			text, _, _ := w.run("", "get", "vault", "v", "-o", format)
			if strings.Contains(text, "password") {
				t.Errorf("it names the field:\n%s", text)
			}
			if stdout, stderr, code := w.run(text, "apply", "-f", "-"); code != 0 || !strings.Contains(stdout, "UNCHANGED") {
				t.Errorf("exit %d %s%s", code, stdout, stderr)
			}
		}
		editor(t, `sed -i 's/name: l$/name: edited/' "$1"`)
		if stdout, stderr, code := w.run("", "edit", "vault", "v"); code != 0 || !strings.Contains(stdout, "UPDATED") {
			t.Errorf("exit %d %s%s", code, stdout, stderr)
		}
		kept(true)
		if _, stderr, code := w.run("apiVersion: v1\nkind: Vault\nmetadata: {name: v}\nspec: {password: "+w.secret+"!}", "apply", "-f", "-"); code != 1 || !strings.Contains(stderr, "must match") {
			t.Errorf("exit %d %s", code, stderr)
		}
		w.run("", "export")
	})
	t.Run("null and what is empty clear", func(t *testing.T) {
		w.t = t
		for _, clears := range []func(){
			func() { w.done(update, input("expectedRevision", revision(), "spec", with("password", nil))) },
			func() { w.done(upsert, input("spec", with("password", ""))) },
			func() {
				w.done(patch, input("expectedRevision", revision(), "spec", map[string]any{"password": nil}))
			},
			func() {
				w.done(patch, input("expectedRevision", revision(), "spec", map[string]any{"password": ""}))
			},
			func() {
				w.done(apply, map[string]any{"m": "apiVersion: v1\nkind: Vault\nmetadata: {name: v}\nspec: {user: ada, password: null}"})
			},
			func() {
				w.done(apply, map[string]any{"m": "apiVersion: v1\nkind: Vault\nmetadata: {name: v}\nspec: {user: ada, password: \"\"}"})
			},
		} {
			w.done(upsert, input())
			kept(true)
			clears()
			kept(false)
		}
	})
	w.t = t
	w.done(upsert, input("spec", with("user", "last")))

	t.Run("streams", func(t *testing.T) {
		w.t = t
		for _, id := range []string{"1", "2"} {
			s.subscribe("end"+id, `{ __typename }`, nil)
		}
		seen := 0
		for last := false; !last; {
			m, err := s.read()
			if err != nil {
				t.Fatal(err)
			}
			w.hears("a WebSocket", string(m.Payload))
			if strings.Contains(string(m.Payload), `"user":"last"`) {
				last = true
			}
			seen++
		}
		for line := range sse {
			w.hears("server-sent events", line)
			if strings.Contains(line, `"user":"last"`) {
				break
			}
			seen++
		}
		if seen < 20 {
			t.Errorf("only %d events", seen)
		}
	})
	w.t = t
	res, err := http.Get(w.address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	w.hears("/metrics", string(metrics))
	w.stop()
	w.hears("the log", w.log.String())
	if !strings.Contains(w.log.String(), `"debug"`) {
		t.Error("the log has nothing at level debug, so that it shows nothing")
	}
	return w
}

// lies wants the secret in the store's file and in no other.
func (w *witness) lies(dir string) {
	w.t.Helper()
	var has []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if w.appearsIn(string(raw)) {
			has = append(has, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if !slices.Equal(has, []string{"sluice.db"}) {
		w.t.Errorf("files with the value: %v, want the store's alone", has)
	}
}

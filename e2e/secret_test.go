package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/internal/redistest"
)

// keysFile is a file with a new key for each id.
func keysFile(t *testing.T, ids ...string) string {
	t.Helper()
	text := "# made by a test\n"
	for _, id := range ids {
		raw := make([]byte, 32)
		_, _ = rand.Read(raw)
		text += id + ":" + base64.StdEncoding.EncodeToString(raw) + "\n"
	}
	path := filepath.Join(t.TempDir(), "keys")
	writeFile(t, path, text)
	return path
}

// secretFields is all that the API shows of a Secret.
const secretFields = ` id kind subKind apiVersion metadata { name namespace uid revision generation labels { key value } description } spec { type immutable } specJSON statusJSON manifest yaml: manifest(format: YAML) json: manifest(format: JSON) `

// revealQuery reads the values of the one Secret.
const revealQuery = `{ reveal(kind: "Secret", name: "s") { resourceId kind namespace name uid revision values { path key value encoding text } } }`

// TestASecretIsWhereItBelongsAlone uses a Secret in every way, and searches all that is
// said and all that is stored for its value, in plain form and in base64.
func TestASecretIsWhereItBelongsAlone(t *testing.T) {
	sameOnEachStore(t)
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	for _, on := range []string{"bolt", "redis"} {
		for _, encrypted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, encrypted %v", on, encrypted), func(t *testing.T) {
				w := &witness{secret: "s" + strings.ToLower(rand.Text())}
				data := t.TempDir()
				args := []string{"--log-level", "debug", "--log-format", "json", "--slow-log", "1ns"}
				stored := data
				if on == "redis" {
					w.redis = redistest.Start(t, redistest.AOF("always"))
					args = append(args, "--redis", w.redis.URL(), "--redis-prefix", prefix(data))
					stored = fmt.Sprint(w.redis.Do("CONFIG", "GET", "dir").(map[any]any)["dir"])
				} else {
					t.Setenv(storeVariable, "") // whatever store the other tests are run on
					args = append(args, "--data", data)
				}
				if encrypted {
					args = append(args, "--encryption-keys-file", keysFile(t, "new", "old"))
				}
				w.gateway = start(t, data, args...)
				w.useSecret()
				w.kill()
				w.hears("the log", w.log.String())
				w.gateway = start(t, data, args...)
				w.reveals()
				w.stop()
				w.hears("the log after a crash", w.log.String())
				apart := 0
				w.everything(func(key string, has bool) {
					if has && (encrypted || !strings.Contains(key, "_sensitive.Secret")) {
						t.Errorf("the entry %q has the value", key)
					} else if has {
						apart++
					}
				})
				if !encrypted && apart == 0 {
					t.Error("the value is not found where it belongs, so that the search shows nothing")
				}
				if w.redis != nil {
					w.redis.Do("SAVE")
				}
				if has := w.files(stored); encrypted != (len(has) == 0) {
					t.Errorf("encrypted %v: files with the value: %v", encrypted, has)
				}
			})
		}
	}
}

// files are those of a folder that have the secret.
func (w *witness) files(dir string) (has []string) {
	w.t.Helper()
	looked := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if looked++; w.appearsIn(string(raw)) {
			has = append(has, path)
		}
		return err
	})
	if err != nil || looked == 0 {
		w.t.Fatalf("%d files in %s: %v", looked, dir, err)
	}
	return has
}

// useSecret does all that can be done with Secrets.
func (w *witness) useSecret() {
	t := w.t
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s := w.dial()
	defer s.close()
	s.subscribe("1", `subscription { secretChanges(snapshot: true) { type cursor revision secret {`+secretFields+`} } }`, nil)
	s.subscribe("2", `subscription { resourceChanges { type resource { id kind metadata { name } manifest specJSON } } }`, nil)
	sse := w.events(ctx, `subscription { secretChanges(filter: {spec: {type: {ne: "nothing"}}}) { type secret {`+secretFields+`} } }`)

	encoded := base64.StdEncoding.EncodeToString([]byte(w.secret))
	manifest := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ntype: Opaque\nstringData:\n  plain: " + w.secret + "\ndata:\n  coded: " + encoded + "\n"
	apply := `mutation($m: String!, $dry: Boolean = false) { applyManifest(input: {manifest: $m, dryRun: $dry}) { outcome warnings { message } resource { kind manifest specJSON } preview { kind manifest specJSON statusJSON } } }`
	for _, c := range []struct {
		manifest string
		dry      bool
		says     string
	}{
		{manifest, true, "CREATED"}, {manifest, false, "CREATED"}, {manifest, false, "UNCHANGED"}, {strings.Replace(manifest, "plain", "other", 1), true, "UPDATED"},
		{strings.Replace(manifest, encoded, w.secret+"!", 1), false, "must be base64"},
		{strings.Replace(manifest, "  plain", "  a/"+w.secret, 1), false, "the key must match"},
		{strings.Replace(manifest, "data:\n  coded: "+encoded, "data: "+encoded, 1), false, "must be a mapping"},
		{strings.Replace(manifest, "plain: "+w.secret, "plain: ["+w.secret+"]", 1), false, "must be a string"},
		{strings.Replace(manifest, "Opaque", "kubernetes.io/tls", 1), false, "add the keys tls.crt and tls.key"},
		{strings.Replace(manifest, "  plain: "+w.secret, "  plain: "+strings.Repeat(w.secret, 40_000), 1), false, "must have at most 750000 characters"},
	} {
		w.fails(apply, map[string]any{"m": c.manifest, "dry": c.dry}, c.says)
	}
	entry := []map[string]any{{"key": "k", "value": w.secret}}
	values := map[string]any{"stringData": entry, "data": []map[string]any{{"key": "coded", "value": encoded}}}
	write := func(verb, name string, more map[string]any, says string) {
		t.Helper()
		in := map[string]any{"name": name, "spec": values}
		for k, v := range more {
			in[k] = v
		}
		w.fails(`mutation($in: `+strings.ToUpper(verb[:1])+verb[1:]+`SecretInput!) { `+verb+`Secret(input: $in) { dryRun preview { specJSON manifest } secret {`+secretFields+`} warnings { message } } }`, map[string]any{"in": in}, says)
	}
	revision := func(name string) string {
		return w.must(`{ secret(name: "`+name+`") { metadata { revision } } }`).get("secret", "metadata", "revision").(string)
	}
	write("create", "t", map[string]any{"dryRun": true}, `"dryRun":true`)
	write("create", "t", nil, `"name":"t"`)
	write("create", "t", nil, "ALREADY_EXISTS")
	write("update", "t", map[string]any{"expectedRevision": "1-1"}, "CONFLICT")
	write("update", "t", map[string]any{"expectedRevision": revision("t"), "description": "d"}, `"description":"d"`)
	write("patch", "t", map[string]any{"expectedRevision": revision("t"), "description": "e"}, `"description":"e"`)
	write("upsert", "t", map[string]any{"description": "f"}, `"description":"f"`)
	write("upsert", "t", map[string]any{"spec": map[string]any{"stringData": w.secret}}, "errors")
	write("upsert", "t", map[string]any{"spec": map[string]any{"data": entry}}, "must be base64")
	for _, literal := range []string{"data: {" + w.secret + ": 1}", `data: ["` + w.secret + `"]`, `stringData: [{key: "k", value: ` + w.secret + `}]`, `stringData: [{key: "` + w.secret + `", value: "1"}, {key: "` + w.secret + `", value: "2"}]`} {
		w.fails(`mutation { upsertSecret(input: {name: "t", spec: {`+literal+`}}) { secret { id } } }`, nil, `"errors"`)
	}
	id := w.must(`{ secret(name: "s") { id } }`).get("secret", "id").(string)
	for _, q := range []string{
		`{ secret(name: "s") {` + secretFields + `} }`,
		`{ secrets(filter: {spec: {type: {eq: "Opaque"}}}, orderBy: [{field: SPEC_TYPE}]) { totalCount edges { cursor node {` + secretFields + `} } pageInfo { endCursor } changeCursor } }`,
		`{ node(id: "` + id + `") { id ... on Secret {` + secretFields + `} } nodes(ids: ["` + id + `"]) { ... on Resource { manifest specJSON } } }`,
		`{ resource(kind: "Secret", name: "s") { id manifest specJSON } resources(kind: "secret") { nodes { id manifest specJSON statusJSON } } }`,
		`{ dependencyTree(id: "` + id + `") { root { resource { manifest } } dependencies { name } dependents { name } } kinds { name verbs fields { path writeOnly mergeInto limits { format } } } }`,
	} {
		w.done(q, nil)
	}
	w.fails(`{ secret(name: "s") { spec { data { value } } } }`, nil, "Cannot query field")
	w.fails(`{ secrets(filter: {spec: {data: {eq: "`+w.secret+`"}}}) { totalCount } }`, nil, "errors")
	for _, args := range [][]string{
		{"get", "secrets", "-o", "wide"}, {"get", "secret", "s", "-o", "yaml", "--explain"}, {"get", "secret", "s", "-o", "json"}, {"get", "secret", "s", "-o", "manifest"},
		{"describe", "secret", "s"}, {"explain", "secret.spec", "--recursive"},
	} {
		if out, stderr, code := w.run("", args...); code != 0 && code != 2 || out+stderr == "" {
			t.Errorf("%v: exit %d %s", args, code, stderr)
		}
	}
	for _, args := range [][]string{{"apply", "-f", "-"}, {"apply", "-f", "-", "--dry-run"}, {"diff", "-f", "-"}} {
		if _, stderr, code := w.run(strings.Replace(manifest, "plain: ", "plain: x", 1), args...); code > 1 {
			t.Errorf("%v: exit %d %s", args, code, stderr)
		}
	}
	w.fails(apply, map[string]any{"m": manifest}, "UPDATED")
	w.done(`mutation { deleteSecret(input: {name: "t"}) { state secret {`+secretFields+`} } }`, nil)
	w.reveals()
	w.done(`mutation { upsertSecret(input: {name: "last", spec: {}}) { secret { id } } }`, nil)
	for seen := ""; !strings.Contains(seen, `"name":"last"`); {
		m, err := s.read()
		if err != nil {
			t.Fatal(err)
		}
		seen = string(m.Payload)
		w.hears("a WebSocket", seen)
	}
	for line := range sse {
		if w.hears("server-sent events", line); strings.Contains(line, `"name":"last"`) {
			break
		}
	}
	_, metrics := w.do("GET", "/metrics", "")
	w.hears("/metrics", metrics)
}

// reveals reads the value by all ways that are meant for it, and by no other.
func (w *witness) reveals() {
	t := w.t
	t.Helper()
	has := func(what, text string) {
		t.Helper()
		if !strings.Contains(text, w.secret) {
			t.Errorf("%s has not the value: %s", what, text)
		}
	}
	for what, headers := range map[string][]string{"JSON": {"Accept", "application/json"}, "events": {"Accept", "text/event-stream"}} {
		body, _ := json.Marshal(map[string]any{"query": revealQuery})
		for method, path := range map[string]string{http.MethodPost: "/graphql", http.MethodGet: "/graphql?query=" + url.QueryEscape(revealQuery)} {
			sent := string(body)
			if method == http.MethodGet {
				sent = ""
			}
			res, text := w.do(method, path, sent, append(headers, "Content-Type", "application/json")...)
			has(method+" as "+what, text)
			if cache := res.Header.Get("Cache-Control"); !strings.Contains(cache, "no-store") {
				t.Errorf("%s as %s: Cache-Control is %q", method, what, cache)
			}
		}
	}
	s := w.dial()
	defer s.close()
	s.subscribe("q", revealQuery, nil)
	raw, _ := json.Marshal(s.next("q").Data)
	has("a WebSocket", string(raw))
	if out, stderr, code := w.cli("", "reveal", "secret", "s", "--key", "plain"); code != 0 || out != w.secret {
		t.Errorf("sluice reveal: exit %d %s", code, stderr)
	}
	c, err := client.New(client.Config{Server: w.address})
	if err != nil {
		t.Fatal(err)
	}
	kind, err := c.Kind(t.Context(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	data, err := c.Reveal(t.Context(), kind, "", "s")
	if err != nil || data == nil || len(data.Values) != 2 || data.Kind != "Secret" || *data.Namespace != "default" || data.Revision == "" {
		t.Fatalf("%+v, %v", data, err)
	}
	for i, key := range []string{"coded", "plain"} {
		if value, err := data.Values[i].Bytes(); err != nil || string(value) != w.secret || *data.Values[i].Key != key {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestAGatewayWithoutKeysIsNotStartedOverEncryptedValues(t *testing.T) {
	t.Parallel()
	data, file := t.TempDir(), keysFile(t, "a")
	g := start(t, data, "--encryption-keys-file", file)
	if a := g.post(`mutation { upsertSecret(input: {name: "s", spec: {stringData: [{key: "a", value: "planted"}]}}) { created } }`, nil); len(a.Errors) > 0 {
		t.Fatal(a.Errors)
	}
	g.stop()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // one that serves does not end
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"serve", "--listen", "127.0.0.1:0"}, store(t, data)...)...)
	out, _ := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	text := lines[len(lines)-1] // what the log says of a server without an AOF comes before
	if cmd.ProcessState.ExitCode() != 2 || !strings.HasPrefix(text, "sluice: encryption-keys-file: the store has values that are encrypted with the key a, and no key is given.") {
		t.Errorf("exit %d: %s", cmd.ProcessState.ExitCode(), text)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "keys")
	writeFile(t, plain, "plain\n"+string(raw))
	for name, keys := range map[string]string{"a new key": keysFile(t, "b"), "the word plain and the key": plain} {
		g := start(t, data, "--encryption-keys-file", keys)
		if a := g.post(`{ secret(name: "s") { id } }`, nil); len(a.Errors) > 0 {
			t.Errorf("%s: %v", name, a.Errors)
		}
		g.stop()
	}
}

func TestTheStartIsRefusedByAMalformedKey(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "keys")
	writeFile(t, bad, "2026:c2VjcmV0LXZhbHVl\n")
	good := keysFile(t, "a")
	for _, c := range []struct {
		variable string
		args     []string
		says     string
	}{
		{"", []string{"--encryption-keys-file", bad}, `sluice: encryption-keys-file: key 1, line 1: key "2026" has 12 bytes; 32 are wanted`},
		{"", []string{"--encryption-keys-file", bad + "-none"}, "sluice: encryption-keys-file: "},
		{"2026:c2VjcmV0LXZhbHVl", nil, `sluice: SLUICE_ENCRYPTION_KEYS: key 1, line 1: key "2026" has 12 bytes; 32 are wanted`},
		{" ", nil, "sluice: SLUICE_ENCRYPTION_KEYS: there is no key"},
		{"a:b", []string{"--encryption-keys-file", good}, "exclude each other"},
	} {
		data := filepath.Join(t.TempDir(), "data")
		cmd := exec.Command(path, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, c.args...)...)
		if c.variable != "" {
			cmd.Env = append(os.Environ(), "SLUICE_ENCRYPTION_KEYS="+c.variable)
		}
		out, _ := cmd.CombinedOutput()
		text := strings.TrimSpace(string(out))
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(text, c.says) || strings.Contains(text, "\n") || strings.Contains(text, "c2VjcmV0") {
			t.Errorf("exit %d: %s\nwant %s", cmd.ProcessState.ExitCode(), text, c.says)
		}
		if _, err := os.Stat(data); err == nil {
			t.Errorf("%s: the store was opened", c.says)
		}
	}
}

func TestManyLargeSecretsAtOnceAreOverTheLimit(t *testing.T) {
	g := start(t, "")
	a := g.post(`mutation($v: String!) { upsertSecret(input: {name: "s", spec: {stringData: [{key: "a", value: $v}]}}) { created } }`, map[string]any{"v": strings.Repeat("x", 700_000)})
	if len(a.Errors) > 0 {
		t.Fatal(a.Errors)
	}
	ask := func(n int) answer {
		query := ""
		for i := range n {
			query += fmt.Sprintf(` a%d: reveal(kind: "Secret", name: "s") { values { value text } }`, i)
		}
		return g.post("{"+query+" }", nil)
	}
	if a := ask(4); len(a.Errors) > 0 {
		t.Errorf("four: %v", a.Errors)
	}
	if a := ask(60); len(a.Errors) == 0 || a.Errors[0].Extensions["code"] != "LIMIT_EXCEEDED" || a.Errors[0].Extensions["setting"] != "limit-held" {
		t.Errorf("sixty: %v", a.Errors)
	}
}

func TestRevealIsRefusedInTheWordsOfTheAPI(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	id := func(kind, name string) string {
		return g.must(`mutation { upsert`+kind+`(input: {name: "`+name+`", spec: {}}) { x: `+strings.ToLower(kind)+` { id } } }`).get("upsert"+kind, "x", "id").(string)
	}
	own := id("Secret", "s")
	network := g.must(`mutation { upsertNetwork(input: {name: "n", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { network { id } } }`).get("upsertNetwork", "network", "id").(string)
	for arguments, says := range map[string]string{
		`name: "s"`:                               "",
		`namespace: null, name: "s"`:              "",
		`kind: "secrets", id: "` + own + `"`:      "",
		`namespace: "default", name: "s"`:         "",
		`name: "absent"`:                          "null",
		`kind: "Network", name: "n"`:              "BAD_USER_INPUT [kind] kind Network is not sensitive, so it has no values to reveal; sensitive kinds: Secret",
		`kind: "Nothing", name: "n"`:              `BAD_USER_INPUT [kind] kind "Nothing" is not known; sensitive kinds: Secret`,
		`id: "` + network + `"`:                   "BAD_USER_INPUT [id] the id is that of a resource of kind Network, not of kind Secret",
		`id: "x"`:                                 `BAD_USER_INPUT [id] id "x" is not an id of this API; take ids from the id field of a resource`,
		`id: "` + own + `", name: "s"`:            "BAD_USER_INPUT [] id and name exclude each other; give one of them",
		`id: "` + own + `", namespace: "default"`: "BAD_USER_INPUT [namespace] the id says which namespace it is; leave namespace out",
		`namespace: "default"`:                    "BAD_USER_INPUT [] no resource is named: give id, or name",
		`name: "A_"`:                              "VALIDATION_FAILED [name] metadata.name: must be a DNS-1123 subdomain",
		`namespace: "A_", name: "s"`:              "VALIDATION_FAILED [namespace] metadata.namespace: must be a DNS label",
	} {
		if !strings.HasPrefix(arguments, "kind:") {
			arguments = `kind: "Secret", ` + arguments
		}
		a := g.post(`{ reveal(`+arguments+`) { name revision values { value } } }`, nil)
		got := ""
		if len(a.Errors) == 1 {
			path, _ := a.Errors[0].Extensions["path"].([]any)
			got = fmt.Sprint(a.Errors[0].Extensions["code"], " ", path, " ", a.Errors[0].Message)
		}
		switch {
		case says == "" && a.get("reveal", "name") == "s":
		case says == "null" && got == "" && a.get("reveal") == nil:
		case says != "" && says != "null" && strings.HasPrefix(got, says) && a.get("reveal") == nil:
		default:
			t.Errorf("%s: %v %s\nwant %s", arguments, a.Data, got, says)
		}
	}
}

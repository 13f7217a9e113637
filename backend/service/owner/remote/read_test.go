package remote_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

func TestRead_RefusesAnswersThatBreakTheContract(t *testing.T) {
	const blue = `{"kind":"Team","namespace":"eu","name":"blue"}`
	long := strings.Repeat("x", 5000)
	describe := func(c *remote.Client) error { _, err := c.Describe(t.Context()); return err }
	list := func(c *remote.Client) error { _, err := c.List(t.Context(), "Team", "p2", 1); return err }
	get := func(c *remote.Client) error { _, err := c.Get(t.Context(), []backend.Key{team("blue")}); return err }
	changes := func(c *remote.Client) error { _, err := c.Changes(t.Context(), "1", 0); return err }
	write := func(c *remote.Client) error {
		_, err := c.Write(t.Context(), owner.Write{Resource: owner.Resource{Key: team("blue"), Spec: []byte(`{}`)}})
		return err
	}
	remove := func(c *remote.Client) error {
		_, err := c.Delete(t.Context(), owner.Delete{Key: team("blue")})
		return err
	}
	for _, one := range []struct {
		call     func(*remote.Client) error
		sent     string
		expected string
	}{
		{describe, `{"kinds":[{"kind":"Te am"}]}`, `service teams: Describe: kinds[0]: a kind cannot be called "Te am"`},
		{describe, `{"kinds":[{"kind":"_lease"}]}`, `kinds[0]: a kind cannot be called "_lease"`},
		{describe, `{"kinds":[{"kind":"A"},{"kind":"A"}]}`, `kinds[1]: A is there twice`},
		{describe, `{"service":"a\nb"}`, `service: "a\nb" has control characters`},
		{list, `{"resources":[{},{}]}`, `service teams: List: the page has 2 resources; at most 1 were asked for`},
		{list, `{"nextPageToken":"p2"}`, `nextPageToken: it is the token that was asked for, so the list would not end`},
		{list, `{"nextPageToken":"` + long + `"}`, `nextPageToken: it has 5000 bytes; at most 4096 are accepted`},
		{get, `{"got":[]}`, `service teams: Get: there are 0 answers to 1 keys`},
		{get, `{"got":[{},{}]}`, `there are 2 answers to 1 keys`},
		{get, `{"got":[{"resource":{"key":{"kind":"Team","name":"red"}}}]}`,
			`got[0]: key: it is Team/red, and Team/eu/blue was asked for`},
		{get, `{"got":[{"resource":{}}]}`, `got[0]: key: it is /, and Team/eu/blue was asked for`},
		{changes, `{}`, `service teams: Changes: position: it is missing`},
		{changes, `{"position":"` + long + `"}`, `position: it has 5000 bytes; at most 4096 are accepted`},
		{write, `{}`, `service teams: Write: outcome: it is missing, or unknown`},
		{write, `{"outcome":"PERHAPS"}`, `outcome: it is missing, or unknown`},
		{write, `{"outcome":77}`, `outcome: it is missing, or unknown`},
		{write, `{"outcome":"WAITS"}`, `the outcome is WAITS, which only a delete can have`},
		{remove, `{"outcome":"EXISTS"}`, `service teams: Delete: the outcome is EXISTS, which only a write can have`},
		{write, `{"outcome":"DONE","resource":{"key":{"kind":"Team","name":"blue"}}}`,
			`resource: key: it is Team/blue, and Team/eu/blue was asked for`},
		{write, `{"outcome":"DONE","resource":{"key":` + blue + `,"tag":"` + long + `"}}`,
			`resource: tag: it has 5000 bytes; at most 1024 are accepted`},
		{write, `{"outcome":"DONE","resource":{"key":` + blue + `,"generation":"-1"}}`, `resource: generation: it is -1`},
	} {
		client := connect(t, remote.Config{Address: serve(t, replying(one.sent))})
		err := one.call(client)
		if !unknown(err) || !strings.HasSuffix(err.Error(), one.expected) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80s: %v", one.sent, err)
		}
	}
}

func TestRead_OneBadResourceIsOneUnreadableOne(t *testing.T) {
	key := func(name string) string { return fmt.Sprintf(`{"kind":"Team","namespace":"eu","name":%q}`, name) }
	long := strings.Repeat("x", 2000)
	body := `{"resources":[
		{"key":` + key("good") + `},
		{"key":` + key("tag") + `,"tag":"` + long + `"},
		{"key":` + key("time") + `,"createdAt":"0001-01-01T00:00:00Z"},
		{"key":` + key(long) + `},
		{"key":{"kind":"User","name":"foreign"}},
		{}],
		"unreadable":[{"key":` + key("told") + `,"message":"its row\nis damaged"}, {}]}`
	client := connect(t, remote.Config{Address: serve(t, replying(body))})
	page, err := client.List(t.Context(), "Team", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var readable []string
	for _, r := range page.Resources {
		readable = append(readable, r.Name+string(r.Spec)+string(r.Status))
	}
	if got := strings.Join(readable, " "); got != "good{} time{}" {
		t.Errorf("readable: %s", got)
	}
	var unreadable []string
	for _, u := range page.Unreadable {
		unreadable = append(unreadable, u.Key.String()+": "+u.Message)
	}
	want := []string{
		"Team/eu/tag: tag: it has 2000 bytes; at most 1024 are accepted",
		"Team/: key: it has 2006 bytes; at most 1003 are accepted",
		`Team/: key.kind: it is "User", and Team was asked for`,
		"Team/: key.kind: it is missing",
		"Team/eu/told: its row is damaged",
		"Team/: ",
	}
	if got := strings.Join(unreadable, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("unreadable:\n%s", got)
	}

	body = `{"got":[
		{"resource":{"key":` + key("tag") + `,"uid":"` + long + `"}},
		{"resource":{"key":` + key("good") + `},"unreadable":"why"}]}`
	client = connect(t, remote.Config{Address: serve(t, replying(body))})
	got, err := client.Get(t.Context(), []backend.Key{team("tag"), team("good")})
	const tooLong = "uid: it has 2000 bytes; at most 256 are accepted"
	if err != nil || got[0].Unreadable != tooLong || got[1].Unreadable != "why" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRead_ChangesOfKeysThatNothingCanHaveAreLeftOut(t *testing.T) {
	body := `{"position":"2","keys":[{},{"kind":"Team"},{"kind":"_lease","name":"x"},{"kind":"Team","name":"a"}]}`
	client := connect(t, remote.Config{Address: serve(t, replying(body))})
	changes, err := client.Changes(t.Context(), "1", 0)
	if err != nil || len(changes.Keys) != 1 || changes.Keys[0].Name != "a" {
		t.Errorf("%+v, %v", changes, err)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"service":"teams","kinds":[{"kind":"Team","changes":true}]}`,
		`{"resources":[{"key":{"kind":"Team","name":"a"},"spec":{"a":[1,{"b":null}]}}],"nextPageToken":"n"}`,
		`{"got":[{"resource":{"key":{"kind":"Team","name":"a"},"createdAt":"2026-01-02T03:04:05Z"}}]}`,
		`{"keys":[{"kind":"Team","name":"a"}],"position":"1"}`,
		`{"outcome":"CONFLICT","resource":{"key":{"kind":"Team","name":"a"},"status":{}}}`,
		`{"outcome":"INVALID","violations":[{"path":"spec.a"}]}`,
	} {
		f.Add([]byte(seed))
	}
	key := backend.Key{Kind: "Team", Name: "a"}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, answer := range remote.ReadAll(raw, "Team", []backend.Key{key}) {
			switch answer := answer.(type) {
			case owner.Page:
				for _, r := range answer.Resources {
					checkRead(t, r)
				}
			case []owner.Got:
				if r := answer[0].Resource; r != nil {
					checkRead(t, *r)
				}
			case owner.Answer:
				if answer.Outcome < owner.Done || answer.Outcome > owner.Refused {
					t.Errorf("outcome %d", answer.Outcome)
				}
				if answer.Resource != nil {
					checkRead(t, *answer.Resource)
				}
			}
		}
	})
}

// checkRead checks that a resource that was read can be stored, and sent again as it is.
func checkRead(t *testing.T, r owner.Resource) {
	t.Helper()
	if r.Kind != "Team" || r.Name == "" || len(r.Tag) > 1024 || len(r.UID) > 256 {
		t.Errorf("%+v", r)
	}
	for _, raw := range [][]byte{r.Spec, r.Status} {
		var object map[string]any
		if len(raw) > 0 && json.Unmarshal(raw, &object) != nil {
			t.Errorf("%s is no JSON object", raw)
		}
	}
}

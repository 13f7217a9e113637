package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

var anon access.Caller

func TestWrite_CreateStoresWhatWasSentAndNothingElse(t *testing.T) {
	f := setup(t)
	out := f.CreateWidget("a", `{"title":"A","tags":[],"heavy":null}`)
	if out.Outcome != service.Created || out.Resource.Stored.Revision.Seq != 1 {
		t.Fatalf("outcome %s, revision %v", out.Outcome, out.Resource.Stored.Revision)
	}
	body, err := decodeBody(f.Stored("a"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(body.Spec); got != `{"tags":[],"title":"A"}` {
		t.Errorf("spec %s: null is the same as absent, [] is kept, no default is stored", got)
	}
	if body.Metadata.Generation != 1 {
		t.Errorf("generation %d, want 1", body.Metadata.Generation)
	}
}

func TestWrite_CreateOfWhatExistsIsAlreadyExistsEvenWithABadSpec(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A"}`)
	for _, spec := range []string{`{"title":"A"}`, `{"title":""}`} {
		_, err := f.Writer.Create(context.Background(), service.CreateRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(spec)})
		e := servicetest.WantCode(t, err, failure.CodeAlreadyExists)
		if e.Kind != "Widget" || e.Namespace != "default" || e.Name != "a" {
			t.Errorf("error names %s %s/%s", e.Kind, e.Namespace, e.Name)
		}
	}
}

func TestWrite_UpdateHoldsTheExpectedRevision(t *testing.T) {
	f := setup(t)
	first := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored.Revision.String()
	out, err := f.UpdateWidget("a", first, `{"title":"B"}`)
	if err != nil || out.Outcome != service.Updated {
		t.Fatalf("%v %v", out, err)
	}
	second := out.Resource.Stored.Revision.String()
	for _, stale := range []string{first, "", "rubbish", "1-2-3", "18446744073709551616-1", strings.Repeat("9", 500)} {
		_, err := f.UpdateWidget("a", stale, `{"title":"C"}`)
		e := servicetest.WantCode(t, err, failure.CodeConflict)
		if e.CurrentRevision != second || e.Retryable {
			t.Errorf("conflict of %.20q: current %s, retryable %v", stale, e.CurrentRevision, e.Retryable)
		}
	}
	_, err = f.UpdateWidget("a", first, `{"title":"B"}`)
	servicetest.WantCode(t, err, failure.CodeConflict) // stale and identical is a conflict
	_, err = f.UpdateWidget("nobody", second, `{"title":"B"}`)
	servicetest.WantCode(t, err, failure.CodeNotFound)
}

func TestWrite_AStatusWriteBetweenReadAndUpdateDoesNotConflict(t *testing.T) {
	f := setup(t)
	read := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored.Revision.String()
	status := f.Rewrite("a", false, func(m map[string]any) { m["status"] = map[string]any{"id": "x1"} })
	f.Rewrite("a", false, func(m map[string]any) { m["status"] = map[string]any{"id": "x2"} })
	out, err := f.UpdateWidget("a", status.Revision.String(), `{"title":"B"}`) // between spec revision and current
	if err != nil {
		t.Fatalf("a revision of a status write: %v", err)
	}
	body, _ := decodeBody(out.Resource.Stored)
	if string(body.Status) != `{"id":"x2"}` || body.Metadata.Generation != 2 {
		t.Errorf("status %s, generation %d", body.Status, body.Metadata.Generation)
	}
	_, err = f.UpdateWidget("a", read, `{"title":"C"}`)
	servicetest.WantCode(t, err, failure.CodeConflict)
}

func TestWrite_AnIdenticalUpdateWritesNothing(t *testing.T) {
	f := setup(t)
	r := f.CreateWidget("a", `{"title":"A","weight":100,"bytes":9007199254740991}`).Resource.Stored.Revision.String()
	before := f.LogPosition()
	out, err := f.UpdateWidget("a", r, `{"weight":1e2,"title":"A","bytes":9007199254740991,"heavy":null}`)
	if err != nil || out.Outcome != service.Unchanged || out.Resource.Stored.Revision.String() != r {
		t.Fatalf("%+v %v", out, err)
	}
	if f.LogPosition() != before {
		t.Error("the store was written")
	}
}

func TestWrite_MetadataIsLeftClearedOrReplaced(t *testing.T) {
	f := setup(t)
	ctx := context.Background()
	labels := func(kv ...string) service.Optional[[]service.Label] {
		out := service.Optional[[]service.Label]{Set: true}
		for i := 0; i < len(kv); i += 2 {
			out.Value = append(out.Value, service.Label{Key: kv[i], Value: kv[i+1]})
		}
		return out
	}
	out, err := f.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(`{"title":"A"}`),
		Metadata: service.Metadata{Labels: labels("app", "x", "example.org/tier", ""), Description: service.Optional[string]{Set: true, Value: "d"}}})
	if err != nil {
		t.Fatal(err)
	}
	step := func(m service.Metadata, want string) {
		t.Helper()
		out, err = f.Writer.Update(ctx, service.UpdateRequest{Identity: servicetest.Named("a"), ExpectedRevision: out.Resource.Stored.Revision.String(), Metadata: m, Spec: json.RawMessage(`{"title":"A"}`)})
		if err != nil {
			t.Fatal(err)
		}
		body, _ := decodeBody(out.Resource.Stored)
		if got := fmt.Sprintf("%v %s %d", body.Metadata.Labels, body.Metadata.Description, body.Metadata.Generation); got != want {
			t.Errorf("metadata %s, want %s", got, want)
		}
	}
	step(service.Metadata{}, "map[app:x example.org/tier:] d 1")
	step(service.Metadata{Labels: labels("app", "y")}, "map[app:y] d 1")
	step(service.Metadata{Labels: labels(), Description: service.Optional[string]{Set: true}}, "map[]  1")
	_, err = f.Writer.Update(ctx, service.UpdateRequest{Identity: servicetest.Named("a"), ExpectedRevision: out.Resource.Stored.Revision.String(),
		Metadata: service.Metadata{Labels: labels("-bad", "ok", "app", "bad value", "app", "again")}, Spec: json.RawMessage(`{"title":"A"}`)})
	if got := servicetest.ViolationPaths(servicetest.WantCode(t, err, failure.CodeValidationFailed)); got != "metadata.labels[0].key format; metadata.labels[1].value format; metadata.labels[2].key unique" {
		t.Errorf("violations %s", got)
	}
}

func TestWrite_OneOfManyConcurrentUpdatesWins(t *testing.T) {
	f := setup(t)
	r := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored.Revision.String()
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := f.UpdateWidget("a", r, fmt.Sprintf(`{"title":"B%d"}`, i))
			if err == nil {
				won.Add(1)
			} else if servicetest.WantCode(t, err, failure.CodeConflict) != nil {
				lost.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 19 {
		t.Errorf("%d won, %d lost", won.Load(), lost.Load())
	}
}

func TestWrite_AnUpdateWinsOverControllersThatWriteStatusAllTheTime(t *testing.T) {
	f := setup(t)
	r := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored.Revision.String()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			cur := f.Stored("a")
			_, _ = f.Store.Apply(context.Background(), backend.Batch{RequestID: "status", Deadline: f.Store.Now().Add(5e9), Actions: []backend.Action{{
				Key: cur.Key, If: backend.Condition{Revision: cur.Revision}, Op: backend.OpPut,
				Put: backend.Put{UID: cur.UID, Body: cur.Body},
			}}})
		}
	})
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		out, err := f.UpdateWidget("a", r, fmt.Sprintf(`{"title":"B%d"}`, i))
		if err != nil {
			e := servicetest.WantCode(t, err, failure.CodeConflict)
			if !e.Retryable {
				t.Fatal(err)
			}
			continue // the controller was faster eight times: retryable, and said so
		}
		r = out.Resource.Stored.Revision.String()
	}
	close(stop)
	wg.Wait()
}

func TestWrite_DeleteHoldsTheRevisionWhereOneIsGiven(t *testing.T) {
	f := setup(t)
	ctx := context.Background()
	first := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored.Revision.String()
	if _, err := f.UpdateWidget("a", first, `{"title":"B"}`); err != nil {
		t.Fatal(err)
	}
	_, err := f.Writer.Delete(ctx, service.DeleteRequest{Identity: servicetest.Named("a"), ExpectedRevision: &first})
	servicetest.WantCode(t, err, failure.CodeConflict)
	out, err := f.Writer.Delete(ctx, service.DeleteRequest{Identity: servicetest.Named("a")})
	if err != nil || servicetest.Title(out.Resource.Body) != "B" {
		t.Fatalf("%+v %v", out, err)
	}
	_, err = f.Writer.Delete(ctx, service.DeleteRequest{Identity: servicetest.Named("a")})
	servicetest.WantCode(t, err, failure.CodeNotFound)
}

func TestWrite_AResourceBeingDeletedIsFrozen(t *testing.T) {
	f := setup(t)
	r := f.CreateWidget("a", `{"title":"A"}`).Resource.Stored
	frozen := f.Put(r.Key, backend.Put{UID: r.UID, Body: r.Body, Deleting: true})
	_, err := f.UpdateWidget("a", frozen.Revision.String(), `{"title":"B"}`)
	servicetest.WantCode(t, err, failure.CodeBeingDeleted)
	_, err = f.UpdateWidget("a", "rubbish", `{"title":"B"}`)
	servicetest.WantCode(t, err, failure.CodeConflict) // the revision is judged first
}

func TestWrite_StoredFieldsThatThisGatewayDoesNotKnowSurviveItsWrites(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A","parts":[{"slot":"s1"},{"slot":"s2"}]}`)
	r := f.Rewrite("a", true, func(m map[string]any) {
		spec := m["spec"].(map[string]any)
		spec["future"] = "kept"
		spec["parts"].([]any)[1].(map[string]any)["torque"] = 7
	})
	before := f.LogPosition()
	out, err := f.UpdateWidget("a", r.Revision.String(), `{"title":"A","parts":[{"slot":"s1"},{"slot":"s2"}]}`)
	if err != nil || out.Outcome != service.Unchanged || f.LogPosition() != before {
		t.Fatalf("identical in all this gateway knows: %+v %v", out, err)
	}
	out, err = f.UpdateWidget("a", r.Revision.String(), `{"title":"B","parts":[{"slot":"s2"},{"slot":"s3"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := decodeBody(out.Resource.Stored)
	if got := string(body.Spec); got != `{"future":"kept","parts":[{"slot":"s2","torque":7},{"slot":"s3"}],"title":"B"}` {
		t.Errorf("spec %s", got)
	}
}

func TestWrite_TheCallersVerbsAreThoseOfTheKind(t *testing.T) {
	f := setup(t)
	ns := "default"
	_, err := f.Writer.Delete(context.Background(), service.DeleteRequest{Identity: kind.Identity{Kind: "Cluster", Name: "c"}})
	servicetest.WantCode(t, err, failure.CodeBadUserInput)
	_, err = f.Reader.Get(context.Background(), kind.Identity{Kind: "Cluster", Namespace: &ns, Name: "c"})
	servicetest.WantCode(t, err, failure.CodeBadUserInput) // GLOBAL kinds have no namespace
	_, err = f.Reader.Get(context.Background(), kind.Identity{Kind: "Gadget", Name: "c"})
	if e := servicetest.WantCode(t, err, failure.CodeBadUserInput); !strings.Contains(e.Message, "known kinds: Widget, Cluster") {
		t.Errorf("message %q", e.Message)
	}
}

func TestWrite_SpecNullIsBadInput(t *testing.T) {
	f := setup(t)
	_, err := f.Writer.Create(context.Background(), service.CreateRequest{Identity: servicetest.Named("a"), Spec: nil})
	servicetest.WantCode(t, err, failure.CodeBadUserInput)
}

func TestWrite_DeprecatedFieldsAreWarnedAbout(t *testing.T) {
	f := setup(t)
	out := f.CreateWidget("a", `{"title":"A","old":"x"}`)
	want := failure.Warning{
		Code:       failure.WarningDeprecated,
		Message:    "spec.old is deprecated: use title",
		Path:       "spec.old",
		Deprecated: "WidgetSpec.old",
	}
	if len(out.Warnings) != 1 || out.Warnings[0] != want {
		t.Errorf("warnings %+v", out.Warnings)
	}
}

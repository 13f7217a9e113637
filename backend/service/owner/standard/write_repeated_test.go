package standard_test

import (
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// recognising is a service that answers a request again whose id it knows, and whose first answers are lost.
func recognising(t *testing.T) standardtest.Config {
	t.Helper()
	const id = "string request_id = 9;"
	cfg := thingConfig(t, map[string]string{
		"CreateThingRequest": id, "UpdateThingRequest": id, "DeleteThingRequest": id,
	})
	var mu sync.Mutex
	answers := map[string]*dynamicpb.Message{}
	cfg.Wrap = func(
		_ *standardtest.Server, _ string, in *dynamicpb.Message, do doing,
	) (*dynamicpb.Message, error) {
		if in.Descriptor().Fields().ByName("request_id") == nil {
			return do()
		}
		mu.Lock()
		defer mu.Unlock()
		known := textIn(in, "request_id")
		if known == "" {
			return nil, refused(connect.CodeInvalidArgument, "the request has no id")
		}
		if was := answers[known]; was != nil {
			return was, nil
		}
		out, err := do()
		if err != nil {
			return nil, err
		}
		answers[known] = out
		return nil, refused(connect.CodeUnavailable, "the answer is lost")
	}
	return cfg
}

func TestWrite_IsRecognisedByItsIDIfItIsSentAgain(t *testing.T) {
	w := newWorld(t, recognising(t), "", nil)
	thing := owner.Resource{
		Key: backend.Key{Kind: "Thing", Name: "a"}, Spec: []byte(`{"text":"first"}`), WriteID: "create",
	}
	lost := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Fatalf("%s is answered", what)
		}
	}
	create := owner.Write{Resource: thing, IfAbsent: true}
	_, err := w.client.Write(t.Context(), create)
	lost("the create", err)
	create.Resent = true
	first := w.write(t, create, owner.Done).Resource

	update := owner.Write{Resource: thing, IfTag: first.Tag}
	update.Resource.Spec = []byte(`{"text":"second"}`)
	update.Resource.WriteID = "update"
	_, err = w.client.Write(t.Context(), update)
	lost("the update", err)
	w.write(t, update, owner.Conflict) // another caller may have sent it
	update.Resent = true
	second := w.write(t, update, owner.Done).Resource
	if string(second.Spec) != `{"text":"second"}` || second.Tag == first.Tag {
		t.Errorf("%+v", second)
	}
	update.Resource.WriteID = "unknown"
	update.Resource.Spec = []byte(`{"text":"third"}`)
	w.write(t, update, owner.Conflict)
	if text := textIn(w.server.Show("a"), "text"); text != "second" {
		t.Errorf("a request of an earlier version has made it %s", text)
	}
}

func TestDelete_IsRecognisedByItsIDIfItIsSentAgain(t *testing.T) {
	w := newWorld(t, recognising(t), "", nil)
	w.server.Put("a", nil)
	gone := owner.Delete{Key: backend.Key{Kind: "Thing", Name: "a"}, ID: "delete"}
	if a, err := w.client.Delete(t.Context(), gone); err == nil {
		t.Fatalf("%+v", a)
	}
	for _, one := range []struct {
		id     string
		resent bool
		want   owner.Outcome
	}{
		{"delete", false, owner.Absent}, {"delete", true, owner.Done}, {"unknown", true, owner.Absent},
	} {
		gone.ID = one.id
		gone.Resent = one.resent
		if a, err := w.client.Delete(t.Context(), gone); err != nil || a.Outcome != one.want {
			t.Errorf("%+v: %+v %v", one, a, err)
		}
	}
}

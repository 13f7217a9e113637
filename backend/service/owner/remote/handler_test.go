package remote_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	pb "github.com/sluicegw/sluice/schema/service/v1/resourcev1"
)

func TestHandler_IsAskedWithCurl(t *testing.T) {
	service := newTeams()
	service.Put(owner.Resource{Key: team("blue"), Spec: []byte(`{"size":3}`)})
	address := serve(t, remote.Handler(service)) + "/sluice.resource.v1.ResourceService/"
	for _, one := range []struct{ call, body, expected string }{
		{"Get", `{"keys":[{"kind":"Team","namespace":"eu","name":"blue"}],"later":true}`, `"spec":{"size":3}`},
		{"Get", `{"keys":[` + strings.Repeat(`{},`, 100) + `{}]}`, `there are 101 keys; at most 100 are accepted`},
		{"Write", `{"resource":{"key":{"kind":"Team","namespace":"eu","name":"red"}},"ifAbsent":true}`, `"outcome":"DONE"`},
		{"Write", `{"resource":{"key":{"kind":"Team","namespace":"eu","name":"red"}},"ifAbsent":true}`, `"outcome":"EXISTS"`},
		{"Delete", `{}`, `the service teams has no kind`},
		{"Erase", `{}`, `404`},
	} {
		res, err := http.Post(address+one.call, "application/json", strings.NewReader(one.body))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !strings.Contains(strings.ReplaceAll(string(body), `": `, `":`), one.expected) {
			t.Errorf("%s %.80s: %d %s, %v", one.call, one.body, res.StatusCode, body, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestHandler_OutcomesAreThoseOfTheContract(t *testing.T) {
	for o := owner.Done; o <= owner.Refused; o++ {
		if got := pb.Outcome(o).String(); got != o.String() {
			t.Errorf("%s is %s in the contract", o, got)
		}
	}
	if len(pb.Outcome_name) != int(owner.Refused)+1 {
		t.Errorf("the contract has %d outcomes", len(pb.Outcome_name))
	}
}

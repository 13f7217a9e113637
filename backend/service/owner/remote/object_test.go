package remote_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

func TestObject_ComesBackAsItWasSent(t *testing.T) {
	for _, spec := range []string{
		`{}`,
		`{"a":null,"b":[true,false,[],{}],"c":"<&>\u2028 ä 😀"}`,
		`{"n":[0,-1,0.1,1e+21,1.5e-7,9007199254740992,-9007199254740992]}`,
	} {
		got, err := remote.RoundTrip(owner.Resource{Key: team("a"), Spec: []byte(spec), Status: []byte(spec)})
		if err != nil || string(got.Spec) != spec || string(got.Status) != spec {
			t.Errorf("%s became %s, %v", spec, got.Spec, err)
		}
	}
}

func TestObject_IsAJSONObject(t *testing.T) {
	for _, spec := range []string{``, `null`, `[]`, `{"a":1}}`, `{"a":`} {
		if got, err := remote.RoundTrip(owner.Resource{Key: team("a"), Spec: []byte(spec)}); err == nil {
			t.Errorf("%s became %s", spec, got.Spec)
		}
	}
}

func TestObject_ANumberThatWouldChangeIsInvalid(t *testing.T) {
	service := newTeams()
	client := connectTo(t, service, remote.ConnectJSON)
	for number, path := range map[string]string{
		"9007199254740993":                "spec.sizes[1].n",
		"-9007199254740993":               "spec.sizes[1].n",
		"100000000000000000000000001":     "spec.sizes[1].n",
		"100000000000000000000000000":     "",
		"-0":                              "",
		"1e400":                           "spec.sizes[1].n",
		"9007199254740992":                "",
		"0.1000000000000000055511151231":  "",
		"123456789012345678901234567e-10": "",
	} {
		answer, err := client.Write(t.Context(), owner.Write{Resource: owner.Resource{
			Key: team("a"), Spec: []byte(`{"sizes":[1,{"n":` + number + `}]}`),
		}})
		switch {
		case err != nil:
			t.Errorf("%s: %v", number, err)
		case path == "" && answer.Outcome != owner.Done:
			t.Errorf("%s: %+v", number, answer)
		case path != "" && (answer.Outcome != owner.Invalid || answer.Violations[0].Path != path):
			t.Errorf("%s: %+v", number, answer)
		}
	}
}

package resolvers_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/core"
)

func TestReveal_WantsOneNameOfOneResource(t *testing.T) {
	w := setup(t)
	id, name, namespace := w.create("Secret", "s", `{"data":{}}`), "s", "default"
	other := w.create("Network", "n", `{"managementPolicy":"unmanaged","cloudCredentialsRef":{"cloudName":"c","secretName":"s"},"import":{"id":"123e4567-e89b-12d3-a456-426614174000"}}`)
	_, err := w.Query().Reveal(t.Context(), "Secret", nil, &namespace, nil)
	w.refused("no name", err, failure.CodeBadUserInput, "")
	_, err = w.Query().Reveal(t.Context(), "Secret", &id, nil, &name)
	w.refused("id and name", err, failure.CodeBadUserInput, "")
	_, err = w.Query().Reveal(t.Context(), "Secret", &id, &namespace, nil)
	w.refused("id and namespace", err, failure.CodeBadUserInput, "namespace")
	_, err = w.Query().Reveal(t.Context(), "Secret", &other, nil, nil)
	w.refused("the id of a network", err, failure.CodeBadUserInput, "id")
	_, err = w.Query().Reveal(t.Context(), "Network", nil, nil, &name)
	w.refused("a kind without sensitive values", err, failure.CodeBadUserInput, "kind")
}

func TestReveal_HasTheTextOfValuesThatAreText(t *testing.T) {
	w := setup(t)
	id := w.create("Secret", "s", `{"data":{"text":"cGxhaW4=","bytes":"/w=="}}`)
	out, err := w.Query().Reveal(t.Context(), "secrets", &id, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.ResourceID != id || out.Kind != "Secret" || *out.Namespace != "default" || out.Name != "s" || len(out.Values) != 2 {
		t.Fatalf("%+v", out)
	}
	for _, v := range out.Values {
		want := map[string]string{"text": "plain"}[*v.Key]
		if v.Encoding != core.RevealedEncodingBase64 || (v.Text == nil) != (want == "") || v.Text != nil && *v.Text != want {
			t.Errorf("%s: %s %v", *v.Key, v.Encoding, v.Text)
		}
	}
	name := "none"
	if out, err := w.Query().Reveal(t.Context(), "Secret", nil, nil, &name); out != nil || err != nil {
		t.Errorf("an absent one: %+v %v", out, err)
	}
}

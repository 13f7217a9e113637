package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

func TestManifest_ErrorsAboutAManifestUseItsWords(t *testing.T) {
	f := setupKinds(t, kindstest.Kinds(t)...)
	credentials := "cloudCredentialsRef: {secretName: s, cloudName: c}"
	for manifest, want := range map[string]string{
		"apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: a}\nspec: {managementPolicy: unmanaged, " + credentials + "}\n": "spec: set import: it is required while managementPolicy is unmanaged",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: 5}\n":                                                                    "stringData: must be a string",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {'a b': x}\n":                                                                "stringData: the key must match",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: '!'}\n":                                                                        "data: must be base64",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ntype: ''\n":                                                                              "type: must have at least 1 characters, has 0",
	} {
		_, err := f.apply(manifest)
		e := servicetest.WantCode(t, err, failure.CodeValidationFailed)
		if !strings.HasPrefix(e.Message, want) || strings.Contains(e.Violations[0].Path, "spec.") {
			t.Errorf("%s%+v, want %s", manifest, e, want)
		}
	}
	_, err := f.Writer.Create(t.Context(), service.CreateRequest{
		Identity: kind.Identity{Kind: "Network", Name: "a"},
		Spec:     json.RawMessage(`{"managementPolicy":"unmanaged","cloudCredentialsRef":{"secretName":"s","cloudName":"c"}}`),
	})
	if e := servicetest.WantCode(t, err, failure.CodeValidationFailed); e.Message != "spec: set import: it is required while managementPolicy is UNMANAGED" {
		t.Errorf("by GraphQL: %s", e.Message)
	}
}

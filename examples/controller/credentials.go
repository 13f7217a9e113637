package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/sluicegw/sluice/graph/client"
)

// credentialsPath is the path of the field that names the Secret with the credentials for the cloud.
const credentialsPath = "spec.cloudCredentialsRef.secretName"

// connect returns a client with the credentials that the spec names. After an error, the controller tries again even if
// the spec does not change, because somebody may correct the Secret.
func (c *controller) connect(ctx context.Context, r *resource) (*cloud, error) {
	at := slices.IndexFunc(r.kind.References, func(ref client.Reference) bool { return ref.Path == credentialsPath })
	if at < 0 {
		return c.cloud, nil // the catalogue has no Secrets
	}
	named := r.spec.CloudCredentialsRef
	secret := client.Kind{Name: r.kind.References[at].Kind, Scope: r.kind.Scope}
	data, err := c.gateway.Reveal(ctx, secret, r.key.Namespace, named.SecretName)
	if err != nil {
		return nil, errors.New("the credentials cannot be read")
	}
	if data == nil {
		return nil, fmt.Errorf("%s/%s with the credentials is not there", secret.Name, named.SecretName)
	}
	for _, e := range data.Values {
		if e.Key == nil || *e.Key != "clouds.yaml" {
			continue
		}
		var file struct {
			Clouds map[string]struct {
				Auth struct{ Token string }
			}
		}
		raw, err := e.Bytes()
		if err != nil || yaml.Unmarshal(raw, &file) != nil { // whose errors would quote the file
			break
		}
		if entry, ok := file.Clouds[named.CloudName]; ok {
			return c.cloud.as(entry.Auth.Token), nil
		}
	}
	return nil, fmt.Errorf("%s/%s has no cloud %q in its clouds.yaml", secret.Name, named.SecretName, named.CloudName)
}

package kinds_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// dependencies are what the kinds of the product depend on, each as the path
// below spec.resource and the kind there. Guarded ones must stay while they are in use.
const dependencies = `
AddressScope           guarded   projectRef Project
ApplicationCredential  guarded   accessRules.serviceRef Service, roleRefs Role, userRef User
ApplicationCredential  free      secretRef Secret
Endpoint               guarded   serviceRef Service
FloatingIP             guarded   floatingNetworkRef Network, floatingSubnetRef Subnet, portRef Port, projectRef Project
Group                  guarded   domainRef Domain
Network                guarded   projectRef Project
Port                   guarded   addresses.subnetRef Subnet, networkRef Network, projectRef Project, securityGroupRefs SecurityGroup
Port                   free      hostID.serverRef Server
Project                guarded   domainRef Domain
Role                   guarded   domainRef Domain
RoleAssignment         guarded   domainRef Domain, groupRef Group, projectRef Project, roleRef Role, userRef User
Router                 guarded   externalGateways.networkRef Network, projectRef Project
RouterInterface        guarded   routerRef Router, subnetRef Subnet
SecurityGroup          guarded   projectRef Project
Server                 guarded   bootVolume.volumeRef Volume, imageRef Image, ports.portRef Port, volumes.volumeRef Volume
Server                 free      flavorRef Flavor, keypairRef KeyPair, schedulerHints.differentHostServerRefs Server, schedulerHints.sameHostServerRefs Server, schedulerHints.serverGroupRef ServerGroup, userData.secretRef Secret
ShareNetwork           guarded   networkRef Network, subnetRef Subnet
Subnet                 guarded   networkRef Network, projectRef Project, routerRef Router
Trunk                  guarded   portRef Port, projectRef Project, subports.portRef Port
User                   guarded   defaultProjectRef Project, domainRef Domain
User                   free      passwordRef Secret
Volume                 guarded   volumeTypeRef VolumeType
Volume                 free      imageRef Image
`

func TestTheKindsDependOnEachOtherAsTheTableSays(t *testing.T) {
	want, got := map[string][]string{}, map[string][]string{}
	count := map[string]int{}
	for line := range strings.Lines(strings.TrimSpace(dependencies)) {
		f := strings.Fields(line)
		want[f[0]+" "+f[1]] = strings.Split(strings.Join(f[2:], " "), ", ")
	}
	for _, k := range kindstest.Kinds(t) {
		for _, r := range k.References {
			group := k.Name + map[bool]string{true: " guarded", false: " free"}[r.Guarded]
			if r.Path == "spec.cloudCredentialsRef.secretName" {
				count["credentials"]++
				if r.Kind != "Secret" || !r.Guarded {
					t.Errorf("the credentials of %s: %+v", k.Name, r)
				}
				continue
			}
			if strings.HasPrefix(r.Path, "spec.import.filter.") {
				count["filters"]++
				if r.Guarded || r.Inverse != "" {
					t.Errorf("what %s is found by holds nothing up and is no relation: %+v", k.Name, r)
				}
				continue
			}
			count[map[bool]string{true: "guarded", false: "free"}[r.Guarded]]++
			path := strings.TrimPrefix(strings.TrimPrefix(r.Path, "spec."), "resource.")
			got[group] = append(got[group], path+" "+r.Kind)
			if r.Inverse == "" {
				t.Errorf("%s.%s has no inverse", k.Name, r.Path)
			}
		}
	}
	for _, list := range got {
		slices.Sort(list)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"guarded": 42, "free": 10, "filters": 24, "credentials": 25}, count); diff != "" {
		t.Errorf("how many (-want +got):\n%s", diff)
	}
}

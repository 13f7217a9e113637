package check

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

var update = flag.Bool("update", false, "write what is rendered to testdata")

const (
	chartFolder = "../sluice"
	casesFolder = "../testdata"
	// sumsFile has the checksums of the chart and of what it renders, for the tests of the gateway, which has no Helm.
	sumsFile = "../testdata/SHA256SUMS"
)

// render returns the objects that the chart makes of values, in the order of their files.
func render(t *testing.T, values map[string]any) ([]string, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "main", Namespace: "apps", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var objects []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(files[name])
		if text != "" && strings.HasSuffix(name, ".yaml") {
			objects = append(objects, text+"\n")
		}
	}
	return objects, nil
}

// strictDecoder decodes objects of Kubernetes, of the Gateway API and of the Prometheus operator. It refuses unknown
// fields, and fields that are there twice.
func strictDecoder(t *testing.T) runtime.Decoder {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, gateway.Install, monitoring.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
}

// objects are those of a case.
type objects struct {
	pod     *core.PodTemplateSpec
	service *core.Service
	ingress *networking.Ingress
	route   *gateway.HTTPRoute
	kinds   []string
}

// decode decodes objects, which all must be known and well-formed.
func decode(t *testing.T, texts []string) objects {
	t.Helper()
	var out objects
	decoder := strictDecoder(t)
	for _, text := range texts {
		object, about, err := decoder.Decode([]byte(text), nil, nil)
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		out.kinds = append(out.kinds, about.Kind)
		switch o := object.(type) {
		case *apps.Deployment:
			out.pod = &o.Spec.Template
		case *apps.StatefulSet:
			out.pod = &o.Spec.Template
			for _, claim := range o.Spec.VolumeClaimTemplates {
				out.pod.Spec.Volumes = append(out.pod.Spec.Volumes, core.Volume{Name: claim.Name})
			}
		case *core.Service:
			out.service = o
		case *networking.Ingress:
			out.ingress = o
		case *gateway.HTTPRoute:
			out.route = o
		}
	}
	slices.Sort(out.kinds)
	return out
}

// check looks at what no type says: that names lead to something, and that the pods may run in a namespace whose level
// of Pod Security is restricted.
func (o objects) check(t *testing.T) {
	t.Helper()
	if !labels.SelectorFromSet(o.service.Spec.Selector).Matches(labels.Set(o.pod.Labels)) {
		t.Error("the service does not select the pods")
	}
	main := o.pod.Spec.Containers[0]
	if o.service.Spec.Ports[0].TargetPort.StrVal != main.Ports[0].Name {
		t.Error("the service leads to no port of the pods")
	}
	for _, probe := range []*core.Probe{main.StartupProbe, main.LivenessProbe, main.ReadinessProbe} {
		if probe.HTTPGet.Port.StrVal != main.Ports[0].Name {
			t.Error("a probe asks no port of the pods")
		}
	}
	o.checkVolumes(t)
	s := o.pod.Spec.SecurityContext
	if !*s.RunAsNonRoot || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the security context of the pods is %+v", s)
	}
	if o.ingress != nil && o.ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name != o.service.Name {
		t.Error("the Ingress leads to no service")
	}
	if o.route != nil {
		to := o.route.Spec.Rules[0].BackendRefs[0]
		if string(to.Name) != o.service.Name || int32(*to.Port) != o.service.Spec.Ports[0].Port {
			t.Error("the route leads to no service")
		}
	}
}

// checkVolumes checks what the containers mount, and what they may do.
func (o objects) checkVolumes(t *testing.T) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range o.pod.Spec.Volumes {
		if volumes[v.Name] {
			t.Errorf("there are two volumes %s", v.Name)
		}
		volumes[v.Name] = true
		if v.HostPath != nil {
			t.Errorf("%s is a folder of the node", v.Name)
		}
	}
	for _, c := range append(o.pod.Spec.InitContainers, o.pod.Spec.Containers...) {
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: there is no volume %s", c.Name, m.Name)
			}
			for _, outer := range c.VolumeMounts { // no folder can be made in a volume that is read-only
				if strings.HasPrefix(m.MountPath, outer.MountPath+"/") {
					t.Errorf("%s: %s is mounted inside %s", c.Name, m.MountPath, outer.MountPath)
				}
			}
		}
		s := c.SecurityContext
		if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
			t.Errorf("%s: its security context is %+v", c.Name, s)
		}
	}
}

func TestChart_RendersWhatKubernetesAccepts(t *testing.T) {
	cases := map[string]string{
		"embedded":    "ConfigMap Service ServiceAccount ServiceMonitor StatefulSet",
		"gateway-api": "ConfigMap Deployment HTTPRoute PodDisruptionBudget Service ServiceAccount",
		"redis":       "ConfigMap Deployment Ingress PodDisruptionBudget PrometheusRule Service ServiceAccount ServiceMonitor",
	}
	for name, kinds := range cases {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(casesFolder, name)
			values, err := chartutil.ReadValuesFile(filepath.Join(folder, "values.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			texts, err := render(t, values)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join(folder, "rendered.yaml"), []byte(strings.Join(texts, "---\n")))
			decoded := decode(t, texts)
			if got := strings.Join(decoded.kinds, " "); got != kinds {
				t.Errorf("there are %s, not %s", got, kinds)
			}
			decoded.check(t)
		})
	}
	if !t.Failed() {
		compare(t, sumsFile, sums(t))
	}
}

func TestChart_RefusesValuesThatCannotWork(t *testing.T) {
	type values = map[string]any
	anonymous := values{"allow-anonymous": true}
	for says, given := range map[string]values{
		"the gateway would not know its callers":  {},
		"settings.listen: the chart sets it":      {"settings": values{"listen": ":80"}},
		"files.oidc: settings.oidc is given, too": {"settings": values{"oidc": "x"}, "files": values{"oidc": "y"}},
		"secretFiles.tokens: settings.tokens or files.tokens is given": {
			"files": values{"tokens": "x"}, "secretFiles": values{"tokens": values{"secret": "a", "key": "b"}},
		},
		"secretFiles.tokens: a secret and a key are wanted": {"secretFiles": values{"tokens": values{"secret": "a"}}},
		"ingress.host: the name of a host is wanted":        {"settings": anonymous, "ingress": values{"enabled": true}},
		"httpRoute: hostnames and parentRefs are wanted":    {"settings": anonymous, "httpRoute": values{"enabled": true}},
		"serviceMonitor.serverName: the name in": {
			"settings": anonymous, "tls": values{"secret": "s"}, "serviceMonitor": values{"enabled": true},
		},
	} {
		if _, err := render(t, given); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v\nwant %s", given, err, says)
		}
	}
	if _, err := render(t, values{"settings": anonymous}); err != nil {
		t.Errorf("the least that works: %v", err)
	}
}

// sums returns a line for each file of the chart and of the cases, as sha256sum prints it.
func sums(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, folder := range []string{chartFolder, casesFolder} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path == filepath.FromSlash(sumsFile) {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(text), filepath.ToSlash(path))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// compare compares a text with the one of a file, or writes it there.
func compare(t *testing.T, path string, text []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, text) {
		t.Errorf("%s is out of date: `make helm-update` writes it", path)
	}
}

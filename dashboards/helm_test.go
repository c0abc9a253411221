package dashboards

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

const chartDir = "../deploy/helm/earshot"

// chart renders the chart as helm does, with the few functions of helm that it
// uses: another one is an error here.
func chart(t *testing.T, set func(values map[string]any)) []map[string]any {
	t.Helper()
	values := make(map[string]any)
	readYAML(t, filepath.Join(chartDir, "values.yaml"), &values)
	set(values)
	root := template.New("chart").Option("missingkey=error")
	root.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := root.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"toYaml": func(v any) (string, error) {
			b, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(b), "\n"), err
		},
		"nindent": func(n int, s string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(s, "\n", pad)
		},
	})
	if _, err := root.ParseGlob(filepath.Join(chartDir, "templates", "*")); err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for _, file := range []string{"configmap.yaml", "daemonset.yaml", "networkpolicy.yaml"} {
		var b bytes.Buffer
		if err := root.ExecuteTemplate(&b, file, map[string]any{"Values": values, "Release": map[string]any{"Name": "watch"}}); err != nil {
			t.Fatal(err)
		}
		for d := yaml.NewDecoder(&b); ; {
			var object map[string]any
			if err := d.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			out = append(out, object)
		}
	}
	return out
}

// at goes down a path of keys.
func at[T any](t *testing.T, object any, path ...string) T {
	t.Helper()
	for _, key := range path {
		m, ok := object.(map[string]any)
		if !ok || m[key] == nil {
			t.Fatalf("no %s in %v", key, object)
		}
		object = m[key]
	}
	v, ok := object.(T)
	if !ok {
		t.Fatalf("%v is %T", path, object)
	}
	return v
}

func TestChart(t *testing.T) {
	var meta struct {
		APIVersion, Name, Version, AppVersion string
	}
	readYAML(t, filepath.Join(chartDir, "Chart.yaml"), &meta)
	if meta.Name != filepath.Base(chartDir) {
		t.Errorf("the chart is called %q", meta.Name)
	}
	objects := chart(t, func(map[string]any) {})
	if len(objects) != 3 || objects[1]["kind"] != "DaemonSet" {
		t.Fatalf("%v", objects)
	}
	text := at[string](t, objects[0], "data", "earshot.yaml")
	file := filepath.Join(t.TempDir(), "earshot.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := configTypes().Load(file, func(name string) (string, bool) { return "x", name == "CLICKHOUSE_WRITER_PASSWORD" }); err != nil {
		t.Error(err)
	}
	pod := at[map[string]any](t, objects[1], "spec", "template", "spec")
	container := at[[]any](t, pod, "containers")[0]
	if image := at[string](t, container, "image"); !tagged.MatchString(image) {
		t.Errorf("image %s has no version", image)
	}
	digest := "sha256:" + strings.Repeat("0a", 32)
	by := chart(t, func(values map[string]any) { values["image"].(map[string]any)["digest"] = digest })
	of := at[[]any](t, by[1], "spec", "template", "spec", "containers")[0]
	if image := at[string](t, of, "image"); image != "registry.example/your/earshot@"+digest {
		t.Errorf("image %s is not that of the digest", image)
	}
	if a, b := at[string](t, objects[0], "metadata", "name"), "watch-earshot"; a != b {
		t.Errorf("the configuration is called %s", a)
	}
	mountsAreThere(t, pod)
	if alone := chart(t, func(v map[string]any) { v["daemonSet"].(map[string]any)["enabled"] = false }); len(alone) != 1 {
		t.Errorf("without a DaemonSet there are %v", alone)
	}
}

// mountsAreThere compares the mounts of the last container of a pod with the pod's volumes.
func mountsAreThere(t *testing.T, pod map[string]any) {
	t.Helper()
	var mounted, volumes []string
	containers := at[[]any](t, pod, "containers")
	for _, m := range at[[]any](t, containers[len(containers)-1], "volumeMounts") {
		mounted = append(mounted, at[string](t, m, "name"))
	}
	for _, v := range at[[]any](t, pod, "volumes") {
		volumes = append(volumes, at[string](t, v, "name"))
	}
	slices.Sort(mounted)
	slices.Sort(volumes)
	if !slices.Equal(mounted, volumes) {
		t.Errorf("mounted are %v, and there are %v", mounted, volumes)
	}
}

// TestSidecarPod holds the example of a pod against the program: its configuration
// loads, its container has the path of it and is the chart's container.
func TestSidecarPod(t *testing.T) {
	f, err := os.Open("../deploy/kubernetes/sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var settings, pod map[string]any
	d := yaml.NewDecoder(f)
	if err := errors.Join(d.Decode(&settings), d.Decode(&pod)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "earshot.yaml")
	if err := os.WriteFile(file, []byte(at[string](t, settings, "data", "earshot.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := at[map[string]any](t, pod, "spec")
	mountsAreThere(t, spec)
	container := at[[]any](t, spec, "containers")[1]
	variables := at[[]any](t, container, "env")
	c, err := configTypes().Load(file, func(name string) (string, bool) {
		return "x", slices.ContainsFunc(variables, func(v any) bool { return at[string](t, v, "name") == name })
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := at[[]any](t, container, "args"); !slices.Equal(got, []any{"run", "-c", "/etc/earshot/earshot.yaml"}) {
		t.Errorf("its arguments are %v", got)
	}
	places := make(map[string]bool)
	for _, m := range at[[]any](t, container, "volumeMounts") {
		places[at[string](t, m, "mountPath")] = true
	}
	if !places[c.DataDir] || !places["/etc/earshot"] || !places["/tmp"] {
		t.Errorf("mounted are %v, and the data is in %s", places, c.DataDir)
	}
	for _, what := range []string{"runAsNonRoot", "readOnlyRootFilesystem"} {
		if !at[bool](t, container, "securityContext", what) {
			t.Errorf("not %s", what)
		}
	}
	port := at[[]any](t, container, "ports")[0]
	if _, listens, _ := strings.Cut(c.Telemetry.Listen, ":"); listens != fmt.Sprint(at[int](t, port, "containerPort")) {
		t.Errorf("telemetry is at %s, and the pod's port %v", c.Telemetry.Listen, port)
	}
	for probe, path := range map[string]string{"readinessProbe": "/readyz", "livenessProbe": "/healthz"} {
		if got := at[string](t, container, probe, "httpGet", "path"); got != path {
			t.Errorf("%s asks for %s", probe, got)
		}
	}
}

// TestManifestsAreClosed holds all manifests to least rights, and to the rights that they need: the
// folders of a node belong to root, and transcripts of mode 0600 to their users.
func TestManifestsAreClosed(t *testing.T) {
	objects := chart(t, func(map[string]any) {})
	pod := at[map[string]any](t, objects[1], "spec", "template", "spec")
	closed := func(name string, pod map[string]any) (securityContext map[string]any) {
		list := at[[]any](t, pod, "containers")
		c := at[map[string]any](t, list[len(list)-1], "securityContext")
		if at[string](t, c, "seccompProfile", "type") != "RuntimeDefault" || at[bool](t, c, "allowPrivilegeEscalation") || !at[bool](t, c, "readOnlyRootFilesystem") ||
			!slices.Equal(at[[]any](t, c, "capabilities", "drop"), []any{"ALL"}) || at[bool](t, pod, "automountServiceAccountToken") {
			t.Errorf("%s: %v", name, c)
		}
		return c
	}
	node := closed("the DaemonSet", pod)
	if at[int](t, node, "runAsUser") != 0 || !slices.Equal(at[[]any](t, node, "capabilities", "add"), []any{"DAC_READ_SEARCH"}) {
		t.Errorf("a DaemonSet cannot write its data or read transcripts: %v", node)
	}
	policy := objects[2]
	if policy["kind"] != "NetworkPolicy" || fmt.Sprint(at[map[string]any](t, policy, "spec", "podSelector", "matchLabels")) != fmt.Sprint(at[map[string]any](t, objects[1], "spec", "template", "metadata", "labels")) {
		t.Fatalf("the policy is not the DaemonSet's: %v", policy)
	}
	if in := at[[]any](t, policy, "spec", "ingress"); len(in) != 1 || len(at[[]any](t, in[0], "ports")) != 1 || at[string](t, at[[]any](t, in[0], "ports")[0], "port") != "metrics" {
		t.Errorf("more than the metrics can be reached: %v", in)
	}
	f, err := os.Open("../deploy/kubernetes/sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var settings, beside map[string]any
	d := yaml.NewDecoder(f)
	if err := errors.Join(d.Decode(&settings), d.Decode(&beside)); err != nil {
		t.Fatal(err)
	}
	side := closed("the sidecar", at[map[string]any](t, beside, "spec"))
	if !at[bool](t, side, "runAsNonRoot") || side["capabilities"].(map[string]any)["add"] != nil {
		t.Errorf("the sidecar: %v", side)
	}
	for name, s := range compose(t) {
		for key, v := range s.Environment {
			if strings.HasSuffix(key, "PASSWORD") && !strings.Contains(v, ":?") {
				t.Errorf("%s: %s has a default", name, key)
			}
		}
	}
}

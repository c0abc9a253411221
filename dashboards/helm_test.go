package dashboards

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/core/config"
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
	for _, file := range []string{"configmap.yaml", "daemonset.yaml"} {
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
	if len(objects) != 2 || objects[1]["kind"] != "DaemonSet" {
		t.Fatalf("%v", objects)
	}
	text := at[string](t, objects[0], "data", "earshot.yaml")
	file := filepath.Join(t.TempDir(), "earshot.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(file, func(name string) (string, bool) { return "x", name == "CLICKHOUSE_WRITER_PASSWORD" }); err != nil {
		t.Error(err)
	}
	pod := at[map[string]any](t, objects[1], "spec", "template", "spec")
	container := at[[]any](t, pod, "containers")[0]
	if image := at[string](t, container, "image"); !pinned.MatchString(image) {
		t.Errorf("image %s is not pinned", image)
	}
	for _, what := range []string{"runAsNonRoot", "readOnlyRootFilesystem"} {
		if !at[bool](t, container, "securityContext", what) {
			t.Errorf("not %s", what)
		}
	}
	if a, b := at[string](t, objects[0], "metadata", "name"), "watch-earshot"; a != b {
		t.Errorf("the configuration is called %s", a)
	}
	var mounted, volumes []string
	for _, m := range at[[]any](t, container, "volumeMounts") {
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
	if alone := chart(t, func(v map[string]any) { v["daemonSet"].(map[string]any)["enabled"] = false }); len(alone) != 1 {
		t.Errorf("without a DaemonSet there are %v", alone)
	}
}

package dashboards

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// fields are the lines of testdata/fields.txt: the types or texts that a field of a panel has, by its path.
func fields(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]string)
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if path, values, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "#") {
			out[path] = strings.Split(values, "|")
		}
	}
	return out
}

// TestPanelsHaveFieldsOfGrafana: a field that Grafana does not know is ignored there without a word.
func TestPanelsHaveFieldsOfGrafana(t *testing.T) {
	known := fields(t)
	used := make(map[string]bool)
	for name := range boardFiles(t) {
		b, err := Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var d struct{ Panels []map[string]any }
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatal(err)
		}
		for _, p := range d.Panels {
			where, kind := name+" / "+p["title"].(string), p["type"].(string)
			var check func(path string, v any)
			check = func(path string, v any) {
				class := ""
				switch v := v.(type) {
				case map[string]any:
					for k, member := range v {
						check(path+"."+k, member)
					}
					return
				case []any:
					for _, item := range v {
						check(path+"[]", item)
					}
					return
				case nil:
					return
				case string:
					if slices.Contains(known[path], `"`+v+`"`) {
						used[path] = true
						return
					}
					class = "string"
				case float64:
					class = "number"
				case bool:
					class = "boolean"
				}
				if used[path] = true; !slices.Contains(known[path], class) {
					t.Errorf("%s: %s is %v, and Grafana takes %q", where, path, v, known[path])
				}
			}
			config, _ := p["fieldConfig"].(map[string]any)
			for member, v := range p {
				switch member {
				case "options":
					check(kind+" options", v)
				case "fieldConfig", "targets":
				default:
					check("any panel."+member, v)
				}
			}
			property := func(id string, v any) {
				switch {
				case id == "links" || id == "mappings": // TestLinksLead has the former, the page draws the latter
				case id == "custom" || strings.HasPrefix(id, "custom."):
					check(kind+" "+id, v)
				default:
					check("any defaults."+id, v)
				}
			}
			if config == nil {
				continue
			}
			for id, v := range config["defaults"].(map[string]any) {
				property(id, v)
			}
			for _, o := range config["overrides"].([]any) {
				for _, set := range o.(map[string]any)["properties"].([]any) {
					set := set.(map[string]any)
					property(set["id"].(string), set["value"])
				}
			}
		}
	}
	for path := range known {
		if !used[path] {
			t.Errorf("no panel has %s: take it out of testdata/fields.txt", path)
		}
	}
}

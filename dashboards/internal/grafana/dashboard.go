// Package grafana is as much of Grafana's Classic dashboard model as Earshot's
// dashboards use, in types. File provisioning takes this model, schemaVersion 42,
// and refuses the newer v2.
package grafana

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The model's version, and the data source it is written for.
const (
	SchemaVersion = 42
	PluginID      = "grafana-clickhouse-datasource"
	PluginVersion = "4.20.0"
)

// Ref names a data source.
type Ref struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// source is the data source that the variable of that name picks.
var source = &Ref{Type: PluginID, UID: "${datasource}"}

// Dashboard is one dashboard.
type Dashboard struct {
	UID           string      `json:"uid"`
	ID            *int        `json:"id"` // assigned by the server
	Title         string      `json:"title"`
	Description   string      `json:"description"`
	Tags          []string    `json:"tags"`
	SchemaVersion int         `json:"schemaVersion"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"`
	Timezone      string      `json:"timezone"`
	Refresh       string      `json:"refresh"`
	Time          Range       `json:"time"`
	Links         []Link      `json:"links"`
	Annotations   Annotations `json:"annotations"`
	Templating    Templating  `json:"templating"`
	Panels        []*Panel    `json:"panels"`
}

// Range is a range of time, as now-6h.
type Range struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Annotations has the marks.
type Annotations struct {
	List []Annotation `json:"list"`
}

// Link is a link in a dashboard's head: to all dashboards with one of the tags.
type Link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	Icon        string   `json:"icon"`
}

// Templating has the variables.
type Templating struct {
	List []Variable `json:"list"`
}

// New returns a dashboard without variables, marks and panels. Times are those of the
// browser, and the cursor is shared by all panels.
func New(uid, title, description string) *Dashboard {
	return &Dashboard{
		UID: uid, Title: title, Description: description, Tags: []string{"earshot"},
		SchemaVersion: SchemaVersion, Editable: true, GraphTooltip: 1, Timezone: "browser", Refresh: "1m",
		Time: Range{"now-6h", "now"},
		Links: []Link{{
			Title: "Earshot", Type: "dashboards", Tags: []string{"earshot"}, AsDropdown: true, IncludeVars: true, KeepTime: true, Icon: "external link",
		}},
		Annotations: Annotations{List: []Annotation{}},
	}
}

// Row adds panels side by side below the existing ones, and numbers them. All have the
// same height, and their own width.
func (d *Dashboard) Row(height int, panels ...*Panel) {
	x, y := 0, d.bottom()
	for _, p := range panels {
		p.ID = len(d.Panels) + 1
		p.GridPos = GridPos{H: height, W: p.GridPos.W, X: x, Y: y}
		x += p.GridPos.W
		d.Panels = append(d.Panels, p)
	}
}

// Heading adds a line with a title.
func (d *Dashboard) Heading(title string) {
	d.Panels = append(d.Panels, &Panel{ID: len(d.Panels) + 1, Type: "row", Title: title, GridPos: GridPos{H: 1, W: 24, Y: d.bottom()}})
}

func (d *Dashboard) bottom() int {
	y := 0
	for _, p := range d.Panels {
		y = max(y, p.GridPos.Y+p.GridPos.H)
	}
	return y
}

// Encode writes the dashboard as it is checked in.
func (d *Dashboard) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // SQL has < and > in it
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, fmt.Errorf("grafana: encode %s: %w", d.UID, err)
	}
	return b.Bytes(), nil
}

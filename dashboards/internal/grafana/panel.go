package grafana

// Panel is one panel. Its height and place come from Dashboard.Row.
type Panel struct {
	ID          int          `json:"id"`
	Type        string       `json:"type"`
	Title       string       `json:"title"`
	Description string       `json:"description,omitempty"`
	GridPos     GridPos      `json:"gridPos"`
	Datasource  *Ref         `json:"datasource,omitempty"`
	Targets     []Target     `json:"targets,omitempty"`
	FieldConfig *FieldConfig `json:"fieldConfig,omitempty"`
	Options     any          `json:"options,omitempty"`
	Interval    string       `json:"interval,omitempty"` // the least width of a point
	Collapsed   *bool        `json:"collapsed,omitempty"`
}

// GridPos is a place on a grid of 24 columns.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Format is the form in which the data source returns rows.
type Format int

// The formats of the ClickHouse data source.
const (
	AsSeries Format = iota
	AsTable
	AsLogs
	AsTraces
)

// Target is a query.
type Target struct {
	RefID         string `json:"refId"`
	Datasource    *Ref   `json:"datasource"`
	EditorType    string `json:"editorType"`
	QueryType     string `json:"queryType"`
	Format        Format `json:"format"`
	RawSQL        string `json:"rawSql"`
	PluginVersion string `json:"pluginVersion"`
}

func target(ref string, f Format, sql string) Target {
	return Target{
		RefID: ref, Datasource: source, EditorType: "sql", QueryType: [...]string{"timeseries", "table", "logs", "traces"}[f],
		Format: f, RawSQL: sql, PluginVersion: PluginVersion,
	}
}

// FieldConfig is the display of values.
type FieldConfig struct {
	Defaults  Defaults   `json:"defaults"`
	Overrides []Override `json:"overrides"`
}

// Defaults hold for all fields.
type Defaults struct {
	Unit       string         `json:"unit,omitempty"`
	Decimals   *int           `json:"decimals,omitempty"`
	Min        *float64       `json:"min,omitempty"`
	NoValue    string         `json:"noValue,omitempty"` // shown when there are no rows
	Color      map[string]any `json:"color,omitempty"`
	Thresholds *Thresholds    `json:"thresholds,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
}

// Thresholds color a value.
type Thresholds struct {
	Mode  string `json:"mode"`
	Steps []Step `json:"steps"`
}

// Step is a color from a value on; nil is the least of all.
type Step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Override holds for the field of that name.
type Override struct {
	Matcher    Matcher    `json:"matcher"`
	Properties []Property `json:"properties"`
}

// Matcher finds a field.
type Matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

// Property is one property of an override.
type Property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// Width sets how many of the 24 columns the panel takes.
func (p *Panel) Width(w int) *Panel {
	p.GridPos.W = w
	return p
}

// Empty sets the text of a query without rows.
func (p *Panel) Empty(text string) *Panel {
	p.FieldConfig.Defaults.NoValue = text
	return p
}

// Every sets the least width of a point in time, as 1m.
func (p *Panel) Every(interval string) *Panel {
	p.Interval = interval
	return p
}

// Warn colors values from the first threshold on orange and from the second red.
func (p *Panel) Warn(orange, red float64) *Panel {
	steps := []Step{{"green", nil}, {"orange", &orange}, {"red", &red}}
	if orange == red {
		steps = []Step{{"green", nil}, {"red", &red}}
	}
	p.FieldConfig.Defaults.Thresholds = &Thresholds{Mode: "absolute", Steps: steps}
	p.FieldConfig.Defaults.Color = map[string]any{"mode": "thresholds"}
	return p
}

// Field adds properties of the field of that name.
func (p *Panel) Field(name string, set ...Property) *Panel {
	p.FieldConfig.Overrides = append(p.FieldConfig.Overrides, Override{Matcher{"byName", name}, set})
	return p
}

// Unit is a field's unit.
func Unit(u string) Property { return Property{"unit", u} }

// Color is the color of a series, or of an arc: green, orange, red or blue.
func Color(name string) Property {
	return Property{"color", map[string]any{"mode": "fixed", "fixedColor": name}}
}

// Columns is a field's width in a table, in pixels.
func Columns(px int) Property { return Property{"custom.width", px} }

// Gauge draws the number as a bar.
func Gauge() Property {
	return Property{"custom.cellOptions", map[string]any{"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}}
}

// LinkTo makes a field's values links.
func LinkTo(title, url string) Property {
	return Property{"links", []map[string]any{{"title": title, "url": url}}}
}

// Red colors the text of these values.
func Red(values ...string) Property {
	options := make(map[string]any, len(values))
	for i, v := range values {
		options[v] = map[string]any{"color": "red", "index": i, "text": v}
	}
	return Property{"mappings", []map[string]any{{"type": "value", "options": options}}}
}

package grafana

// Annotation marks moments in all charts of a dashboard. Its query returns the columns time and text, by
// which names Grafana finds them.
type Annotation struct {
	Name       string `json:"name"`
	Enable     bool   `json:"enable"`
	Hide       bool   `json:"hide"`
	IconColor  string `json:"iconColor"`
	Datasource *Ref   `json:"datasource"`
	Target     Target `json:"target"`
}

// Mark is an annotation that is shown until a person turns it off.
func Mark(name, color, sql string) Annotation {
	return Annotation{Name: name, Enable: true, IconColor: color, Datasource: source, Target: target("mark", AsTable, sql)}
}

package grafana

// Variable is a choice above the panels.
type Variable struct {
	Name        string         `json:"name"`
	Label       string         `json:"label"`
	Description string         `json:"description,omitempty"`
	Type        string         `json:"type"`
	Query       any            `json:"query"`
	Definition  string         `json:"definition,omitempty"`
	Datasource  *Ref           `json:"datasource,omitempty"`
	Refresh     int            `json:"refresh,omitempty"` // 1: on load, 2: when the range changes
	Multi       bool           `json:"multi,omitempty"`
	IncludeAll  bool           `json:"includeAll,omitempty"`
	Current     map[string]any `json:"current"`
	Options     []Option       `json:"options"`
	Hide        int            `json:"hide"`
	Sort        int            `json:"sort,omitempty"`
}

// Option is one of the values of a custom variable.
type Option struct {
	Text     string `json:"text"`
	Value    string `json:"value"`
	Selected bool   `json:"selected"`
}

// VariableQuery is the query of a variable.
type VariableQuery struct {
	EditorType string `json:"editorType"`
	RawSQL     string `json:"rawSql"`
	RefID      string `json:"refId"`
}

// Datasource is the variable that all queries take their data source from.
func Datasource() Variable {
	return Variable{
		Name: "datasource", Label: "Data source", Type: "datasource", Query: PluginID, Refresh: 1,
		Current: map[string]any{}, Options: []Option{},
	}
}

// Choice is a variable of which any number of values can be picked. sql returns
// them in one column.
func Choice(name, label, sql string) Variable {
	return Variable{
		Name: name, Label: label, Type: "query", Datasource: source, Definition: sql,
		Query: VariableQuery{EditorType: "sql", RawSQL: sql, RefID: "variable"}, Refresh: 2, Multi: true, IncludeAll: true,
		Current: map[string]any{"text": []string{"All"}, "value": []string{"$__all"}}, Options: []Option{},
	}
}

// Text is a variable that is typed, or filled in by a link.
func Text(name, label, description string) Variable {
	return Variable{
		Name: name, Label: label, Description: description, Type: "textbox", Query: "",
		Current: map[string]any{"text": "", "value": ""}, Options: []Option{{Selected: true}},
	}
}

// OneOf is a variable with fixed values, the first of which is picked.
func OneOf(name, label string, values ...Option) Variable {
	query := ""
	for i := range values {
		values[i].Selected = i == 0
		if i > 0 {
			query += ","
		}
		query += values[i].Text + " : " + values[i].Value
	}
	return Variable{
		Name: name, Label: label, Type: "custom", Query: query,
		Current: map[string]any{"text": values[0].Text, "value": values[0].Value}, Options: values,
	}
}

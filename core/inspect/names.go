package inspect

// Agent names an agent for a person as the boards do: one that its format does not name, as that which a person talks to
// in some formats, has the format's name in brackets.
func Agent(name, format string) string {
	if name == "" {
		return "(" + or(format, "unknown") + ")"
	}
	return name
}

// Delegate names the agent that work is handed to, in the same way: its format is not known.
func Delegate(name string) string { return Agent(name, "") }

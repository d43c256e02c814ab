#!/usr/bin/env python3
"""Prints docs/api.md from docs/openapi.json.

usage: render_api.py [OPENAPI.json]
"""

import json
import pathlib
import sys


def type_of(schema: dict) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "oneOf" in schema:
        return " or ".join(type_of(choice) for choice in schema["oneOf"])
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return "[" + ", ".join(type_of(item) for item in schema["prefixItems"]) + "]"
        return f"list of {type_of(schema['items'])}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"name → {type_of(schema['additionalProperties'])}"
    if schema.get("type") == "object" and schema.get("properties"):
        return "{" + ", ".join(f"{key}: {type_of(value)}" for key, value in schema["properties"].items()) + "}"
    return schema.get("type", "anything")


def main() -> None:
    root = pathlib.Path(__file__).resolve().parent.parent
    api = json.loads(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else root / "docs/openapi.json").read_text())
    print("# The server's API\n\n<!-- Made from openapi.json by tools/render_api.py; change that. -->\n")
    print(api["info"]["description"])
    print("Bodies and answers are JSON. An error is a 4xx or 5xx with [Error](#error); it has changed nothing, except as said above.")
    print("The server serves this as `/v1/openapi.json`.\n\n## Calls\n")
    print("| call | what | role | body | answer |\n| --- | --- | --- | --- | --- |")
    parameters = {}
    for path, calls in api["paths"].items():
        for method, call in calls.items():
            body = call.get("requestBody")
            sent = type_of(body["content"]["application/json"]["schema"]) if body else ""
            content = call["responses"]["200"]["content"]
            answer = type_of(content["application/json"]["schema"]) if "application/json" in content else "event stream"
            print(f"| `{method.upper()} {path}` | {call['summary']} | {call.get('x-role', '')} | {sent} | {answer} |")
            asked = [p for p in call.get("parameters", []) if p["in"] != "path"]
            if asked:
                parameters[f"{method.upper()} {path}"] = asked
    print("\n## Parameters\n\n| call | parameter | type | meaning |\n| --- | --- | --- | --- |")
    for call, asked in parameters.items():
        for parameter in asked:
            print(f"| `{call}` | `{parameter['name']}` | {type_of(parameter['schema'])} | {parameter['description']} |")
    print("\n## Values")
    for name, schema in api["components"]["schemas"].items():
        print(f"\n### {name}\n")
        if "description" in schema:
            print(schema["description"])
        if not schema.get("properties"):
            print("An object." if "description" not in schema else "", end="\n" if "description" not in schema else "")
            continue
        print("\n| member | type | |\n| --- | --- | --- |" if "description" in schema else "| member | type | |\n| --- | --- | --- |")
        for key, member in schema["properties"].items():
            optional = "" if key in schema.get("required", []) else "optional; "
            print(f"| `{key}` | {type_of(member)} | {(optional + member.get('description', '')).rstrip('; ')} |")


if __name__ == "__main__":
    main()

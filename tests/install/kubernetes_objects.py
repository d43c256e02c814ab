"""Checks objects of Kubernetes against its published API: names and types of all fields, and required ones.

The API is that of the Python client (Debian package python3-kubernetes), whose classes are generated from Kubernetes' OpenAPI
description. Of the Prometheus operator's objects, the fields that we use are listed here, as in its API reference.
"""

import re

from kubernetes import client

PRIMITIVES = {"str": str, "int": int, "bool": bool, "float": (int, float), "object": object}
CLASSES = {("apps/v1", "Deployment"): "V1Deployment", ("apps/v1", "DaemonSet"): "V1DaemonSet", ("v1", "Service"): "V1Service",
           ("v1", "Namespace"): "V1Namespace", ("networking.k8s.io/v1", "NetworkPolicy"): "V1NetworkPolicy"}
SERVICE_MONITOR = {
    "type": "object", "additionalProperties": False, "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "monitoring.coreos.com/v1"}, "kind": {"const": "ServiceMonitor"}, "metadata": {"type": "object"},
        "spec": {
            "type": "object", "additionalProperties": False, "required": ["endpoints", "selector"],
            "properties": {
                "selector": {"type": "object", "additionalProperties": False, "properties": {"matchLabels": {"type": "object"}}},
                "endpoints": {"type": "array", "minItems": 1, "items": {
                    "type": "object", "additionalProperties": False,
                    "properties": {
                        "port": {"type": "string"}, "path": {"type": "string"},
                        "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
                        "scheme": {"enum": ["http", "https"]},
                        "tlsConfig": {"type": "object", "additionalProperties": False, "properties": {
                            "serverName": {"type": "string"},
                            "ca": {"type": "object", "additionalProperties": False, "properties": {"secret": {
                                "type": "object", "additionalProperties": False, "required": ["key"],
                                "properties": {"name": {"type": "string"}, "key": {"type": "string"}}}}}}},
                        "authorization": {"type": "object", "additionalProperties": False, "properties": {
                            "type": {"type": "string"},
                            "credentials": {"type": "object", "additionalProperties": False, "required": ["key"],
                                            "properties": {"name": {"type": "string"}, "key": {"type": "string"}}}}}}}}}}}}


def wrong_fields(value, type_name, path):
    """What differs from the type, as sentences."""
    if type_name in PRIMITIVES:
        wanted = PRIMITIVES[type_name]
        fits = isinstance(value, wanted) and not (isinstance(value, bool) and wanted in (int, (int, float)))
        return [] if fits else [f"{path}: {value!r} is no {type_name}"]
    if match := re.fullmatch(r"list\[(.*)\]", type_name):
        if not isinstance(value, list):
            return [f"{path}: {value!r} is no list"]
        return [wrong for i, one in enumerate(value) for wrong in wrong_fields(one, match[1], f"{path}[{i}]")]
    if not isinstance(value, dict):
        return [f"{path}: {value!r} is no object"]
    if match := re.fullmatch(r"dict\(str, (.*)\)", type_name):
        return [wrong for key, one in value.items() for wrong in wrong_fields(one, match[1], f"{path}.{key}")]
    kind = getattr(client, type_name)
    names = {json_name: name for name, json_name in kind.attribute_map.items()}
    wrong = [f"{path}.{key}: {type_name} has no such field" for key in value if key not in names]
    known = {key: one for key, one in value.items() if key in names}
    try:
        kind(**{names[key]: one for key, one in known.items()})
    except ValueError as missing:  # a required field, or a value that is not allowed
        wrong.append(f"{path}: {missing}")
    for key, one in known.items():
        wrong += wrong_fields(one, kind.openapi_types[names[key]], f"{path}.{key}")
    return wrong


def wrong_in(one):
    """What is wrong with an object; empty: nothing."""
    name = f"{one.get('kind')} {one.get('metadata', {}).get('name')}"
    if one.get("kind") == "ServiceMonitor":
        import jsonschema
        errors = jsonschema.Draft7Validator(SERVICE_MONITOR).iter_errors(one)
        return [f"{name}: {'.'.join(map(str, error.path))}: {error.message}" for error in errors]
    type_name = CLASSES.get((one.get("apiVersion"), one.get("kind")))
    if type_name is None:
        return [f"{name}: unknown kind {one.get('apiVersion')} {one.get('kind')}"]
    return wrong_fields(one, type_name, name)

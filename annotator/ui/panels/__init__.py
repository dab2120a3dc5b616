"""The panels of the page. Each is a module with its HTML, JavaScript and server functions; none knows another."""

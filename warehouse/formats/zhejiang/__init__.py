"""Raw formats of the Zhejiang Lab release, and the forms of names that several of them have."""

PORT_NAME = r"(?:TwoHundredGigE|FourHundredGigE|M-GigabitEthernet)\d{1,3}/\d{1,3}/\d{1,3}(?::\d{1,3})?"
"""Full names of the ports whose class and line rate the models know."""

OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
ADDRESS = rf"(?:{OCTET}[.]){{3}}{OCTET}"
"""IPv4 address."""
